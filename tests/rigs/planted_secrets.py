"""Kinds of secrets as they stand in code, logs and addresses. Made up here: none of them opens anything.

Keys are put together from two parts, so that no scanner of source code takes this file for a leak.
"""

from __future__ import annotations

from dataclasses import dataclass

_HEX = "9f86d081884c7d659a2feaa0c55ad015"
_LONG = "Zq3vT8yLm2RkX7wNc4HbJ9fD"


@dataclass(frozen=True)
class Secret:
    """One kind.

    Attributes:
        kind: What it is.
        text: As it stands in a line of code or of a log.
        value: What must not be kept.
    """

    kind: str
    text: str
    value: str


def _bare(kind: str, value: str) -> Secret:
    """One that is known by its form alone."""
    return Secret(kind, f"using {value} for this run", value)


SECRETS = (
    _bare("Hugging Face token", "hf_" + _LONG),
    _bare("OpenAI key", "sk-" + "proj-" + _LONG),
    _bare("Anthropic key", "sk-" + "ant-api03-" + _LONG),
    _bare("Groq key", "gsk_" + _LONG * 2),
    _bare("NVIDIA key", "nvapi-" + _LONG * 2),
    _bare("Replicate token", "r8_" + _LONG + "Aa1Bb2Cc3Dd4E"),
    _bare("GitHub token", "ghp_" + _LONG + "0123456789ab"),
    _bare("GitHub fine-grained token", "github_pat_" + _LONG + "_" + _LONG),
    _bare("GitLab token", "glpat-" + _LONG[:20]),
    _bare("Slack bot token", "xoxb-" + "123456789012-" + _LONG),
    _bare("Slack app token", "xapp-" + "1-A0123-" + _LONG),
    _bare("AWS key id", "AKIA" + "ABCDEFGHIJKLMNOP"),
    _bare("Google key", "AIza" + "SyA1234567890abcdefghijklmnopqrstuv"),
    _bare("Google access token", "ya29." + "a0AfH6SM" + _LONG),
    _bare("npm token", "npm_" + _LONG + "0123456789ab"),
    _bare("PyPI token", "pypi-" + "AgEIcHlwaS5vcmc" + _LONG),
    _bare("Docker Hub token", "dckr_pat_" + _LONG),
    _bare("DigitalOcean token", "dop_v1_" + _HEX * 2),
    _bare("Databricks token", "dapi" + _HEX),
    _bare("Vault token", "hvs." + _LONG),
    _bare("SendGrid key", "SG." + _LONG[:22] + "." + _LONG + "abcdefg"),
    _bare("Twilio key", "SK" + _HEX),
    _bare("Mailgun key", "key-" + _HEX),
    _bare("Stripe key", "sk_" + "live_" + _LONG),
    _bare("Shopify token", "shpat_" + _HEX),
    _bare("Sentry token", "sntrys_" + _LONG + "="),
    _bare("New Relic key", "NRAK-" + "ABCDEFGHIJKLMNOPQRSTUVWXYZ0"),
    _bare("Grafana token", "glsa_" + _LONG),
    _bare("Telegram bot token", "123456789:" + "AA" + _LONG + "abcdefghij"),
    _bare("age key", "AGE-SECRET-KEY-" + "1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2),
    _bare("JSON web token", "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + _LONG),
    Secret("AWS secret key", f"AWS_SECRET_ACCESS_KEY=wJalr/{_LONG}+K7", f"wJalr/{_LONG}"),
    Secret("Weights & Biases key", f"wandb.login(key='{_HEX}abcdef12')", _HEX),
    Secret("password in code", "db = connect(user='ann', password='tr0ub4dor and 3')", "tr0ub4dor"),
    Secret("password in JSON", '{"user": "ann", "passwd": "hunter2hunter2"}', "hunter2hunter2"),
    Secret("escaped JSON", r'"{\"client_secret\": \"s3cr3tvalue99\"}"', "s3cr3tvalue99"),
    Secret("JSON escaped twice", r'{\\"api_key\\": \\"s3cr3tvalue77\\"}', "s3cr3tvalue77"),
    Secret("password in YAML", "  db_password: correcthorse77", "correcthorse77"),
    Secret("passphrase", "ssh_passphrase = b'open sesame 4711'", "sesame 4711"),
    Secret("password option", "mysqldump --password pw0rdpw0rd --all", "pw0rdpw0rd"),
    Secret("token option", "wandb --api-token=t0kt0kt0k99 sync", "t0kt0kt0k99"),
    Secret("curl user", "curl -s -u ann:curlpw4711 https://example.org", "curlpw4711"),
    Secret("netrc", "machine example.org login ann password netrcpw42", "netrcpw42"),
    Secret("database address", "postgresql://ann:pgpw%21now@db.example.org:5432/x", "pgpw%21now"),
    Secret("Redis address", "redis://:redispw123@cache.example.org:6379/0", "redispw123"),
    Secret("token as user", f"git clone https://{_LONG}@dev.example.org/x.git", _LONG),
    Secret("token in an address", "GET https://example.org/a?token=urltok8877&b=2", "urltok8877"),
    Secret("signature in an address", "https://x.example.org/c?sp=r&sig=Sg%2Bx99%3D", "Sg%2Bx99"),
    Secret(
        "bearer header", "headers={'Authorization': 'Bearer abcdef1234567890'}", "abcdef1234567890"
    ),
    Secret("basic header", "> Authorization: Basic YW5uOnBhc3N3b3Jk", "YW5uOnBhc3N3b3Jk"),
    Secret("cookie", "< Set-Cookie: session=c00kiec00kie42; Path=/", "c00kiec00kie42"),
    Secret("header key", "x-api-key: xk99xk99xk99", "xk99xk99xk99"),
    Secret("Slack webhook", f"https://hooks.slack.com/services/T0/B0/{_LONG}", _LONG),
    Secret("Discord webhook", f"https://discord.com/api/webhooks/1234/{_LONG}-{_LONG}", _LONG),
    Secret("Azure storage", f"AccountName=a;AccountKey={_LONG}==;Suffix=x", _LONG),
    Secret(
        "private key",
        "-----BEGIN RSA PRIVATE "
        + "KEY-----\nMIIEowIBAAKCAQEA7\n-----END RSA PRIVATE "
        + "KEY-----",
        "MIIEowIBAAKCAQEA7",
    ),
    Secret(
        "private key, cut off",
        "-----BEGIN OPENSSH PRIVATE " + "KEY-----\nb3BlbnNzaC1rZXk",
        "b3BlbnNzaC1rZXk",
    ),
    Secret(
        "service account",
        '{"project_id": "x", "private_key": "-----BEGIN PRIVATE ' + 'KEY-----\\nMIIEvQIBADAN\\n"}',
        "MIIEvQIBADAN",
    ),
)
