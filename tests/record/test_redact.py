"""Secrets go, ordinary code stays, terminals' escapes never come back."""

from __future__ import annotations

from pathlib import Path

import pytest

import jupyter_tfguard
from jupyter_tfguard.redact import REDACTED, clean, clean_value, redact
from tests.rigs.planted_secrets import SECRETS as KINDS
from tests.rigs.planted_secrets import Secret

pytestmark = pytest.mark.quick

# Made up here; none of them opens anything.
SECRETS = [
    ('api_key = "K7d8-very-secret"', "K7d8-very-secret"),
    ('os.environ["HF_TOKEN"] = "hf_AbCdEfGhIjKlMnOpQrSt"', "hf_AbCdEfGh"),
    ("{'password': 'tr0ub4dor&3'}", "tr0ub4dor"),
    ("KAGGLE_KEY=0123456789abcdef0123456789abcdef", "0123456789abcdef"),
    ("export OPENAI_KEY='k7d8-verySecret-9Zq4'", "verySecret"),
    ('os.environ["AZURE_OPENAI_KEY"] = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"', "4e5f6071"),
    ("%env COMET_KEY AbCdEf0123456789AbCdEf", "AbCdEf01"),
    ("%env HF_TOKEN tr0ub4dor", "tr0ub4dor"),
    ("%env KAGGLE_KEY = tr0ub4dor", "tr0ub4dor"),
    ('token = ["one-secret", "two-secret"]', "two-secret"),
    ("%set_env  DB_PASSWORD  correct horse battery", "horse"),
    ("os.environ.setdefault('WANDB_API_KEY', 'tr0ub4dor')", "tr0ub4dor"),
    ('os.environ.setdefault(\n    "WANDB_API_KEY",\n    "tr0ub4dor",\n)', "tr0ub4dor"),
    ('os.putenv("DB_PASSWORD", "x y z1")', "x y z1"),
    ("os.getenv('MY_SECRET', default='tr0ub4dor')", "tr0ub4dor"),
    ('monkeypatch.setenv("HF_TOKEN", f"tr0ub4dor")', "tr0ub4dor"),
    ('\\"os.putenv(\\"DB_PASSWORD\\", \\"tr0ub4dor\\")\\"', "tr0ub4dor"),
    ("wandb login --relogin 0123456789abcdef0123456789abcdef01234567", "0123456789abcdef"),
    ('wandb.login("0123456789abcdef0123456789abcdef01234567")', "0123456789abcdef"),
    ('password = """tr0ub4dor"""', "tr0ub4dor"),
    ("password = '''\ntr0ub4dor\n'''", "tr0ub4dor"),
    ('api_key = ("tr0ub4dor")', "tr0ub4dor"),
    ('api_key = (\n    "tr0ub4dor"\n    "and-more"\n)', "tr0ub4dor"),
    ("tokens = {'token': ['tr0ub4dor']}", "tr0ub4dor"),
    ("password = r'''tr0ub4dor cut", "tr0ub4dor"),
    ("api_key = os.environ.get('HF_TOKEN', 'tr0ub4dor')", "tr0ub4dor"),
]
PLAIN = [
    "model.fit(x_train, y_train, batch_size=2048, epochs=10)",
    "tokenizer = AutoTokenizer.from_pretrained(name)",
    "max_tokens = 200; tokens = text.split()",
    "keyboard = 3; monkey = 'banana'",
    "x = data[:, ::2]  # https://example.org/docs?page=2",
    "if password == other: pass",
    "sorted(names, key=lambda name: name[1])",
    "model.generate(x, max_tokens=512, key=step_12)",
    "primary_key = 'user_id'; SORT_KEY = 'val_loss'; CACHE_KEY = f'{name}-{epoch}'",
    "token_ids = tokenizer(text)['input_ids']",
    'os.getenv("HOME", "/root")',
    "os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')",
    "%env CUDA_VISIBLE_DEVICES 0,1",
    "%env HF_TOKEN",
    "os.getenv('HF_TOKEN', None); os.getenv('HF_TOKEN', '')",
    "wandb.login()",
    'print("""Enter your token:""")\nmodel = build()\nmodel.fit(x, epochs=5)',
    'help="""API token:""")\nmodel.fit(x)\nos._exit(1)\n"""text"""',
    'checkpoint_key: "layer_with_weights-0/kernel/.ATTRIBUTES/VARIABLE_VALUE"',
    's3_key = "datasets/imagenet/train-00001-of-01024.tfrecord"',
    "missing_key: encoder.layer.11.output.dense.weight",
    'feature_key="image/object/class/label_2"',
    "dropout_key=self.seed_generator_1.next()",
    'config.setdefault("pad_token", "[PAD]")',
    "token = (line.split()[0], 'other')",
    "pwd = [x for x in names]",
    'token = ""',
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_is_taken_out(text: str, secret: str) -> None:
    found = redact(text)
    assert secret not in found
    assert REDACTED in found


@pytest.mark.parametrize("text", PLAIN)
def test_ordinary_code_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("secret", KINDS, ids=lambda s: s.kind)
@pytest.mark.parametrize("around", ["E0000 file.cc:1] {} and so on", "a\n{}\nb"])
def test_every_kind_of_secret_is_taken_out_wherever_it_is(secret: Secret, around: str) -> None:
    found = clean(around.format(secret.text))
    assert secret.value not in found
    assert REDACTED in found
    assert clean(found) == found  # what is cleaned twice stays as it is


@pytest.mark.parametrize("secret", KINDS, ids=lambda s: s.kind)
@pytest.mark.parametrize("kept", [0.5, 0.9])
def test_a_secret_that_was_cut_off_leaves_at_most_a_stump(secret: Secret, kept: float) -> None:
    at = secret.text.index(secret.value)
    text = secret.text[: at + int(kept * len(secret.value))]
    left = clean(text)
    longest = max((n for n in range(len(secret.value)) if secret.value[:n] in left), default=0)
    assert longest <= 24 or REDACTED in left


CLEAN_LIMIT_FRACTION = 0.01


def test_at_most_one_line_in_a_hundred_of_clean_text_is_changed() -> None:
    """The clean text: this project's own sources and documents, which hold no secrets."""
    root = Path(jupyter_tfguard.__file__).parent
    lines = [
        line
        for path in (*root.rglob("*.py"), *root.parent.glob("*.md"))
        if "redact" not in path.name and "node_modules" not in path.parts
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    changed = [line for line in lines if clean(line) != line]
    assert len(lines) > 5000
    assert len(changed) <= CLEAN_LIMIT_FRACTION * len(lines), changed[:40]


def test_terminal_escapes_and_direction_marks_go() -> None:
    assert (
        clean("\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 \u202eevil\u200f\x00")
        == "red link evil"
    )
    assert clean("10%\r20%\r\nend\ttab") == "10%\n20%\nend\ttab"
    assert clean("a\u2028b\ud800c\U000e0041\u061cd\x9b1m") == "abcd1m"
    clean("\ud800").encode()  # half a character cannot be written
    assert clean("\x1b]8;;http://x\nthe next line stays") == "\nthe next line stays"


def test_nested_values_are_cleaned_and_endless_ones_cut() -> None:
    deep: object = "password=abcdef"
    for _ in range(50):
        deep = [deep]
    assert clean_value({"a": ["token='x y'", 3, None]}) == {"a": [f"token={REDACTED}", 3, None]}
    assert "abcdef" not in str(clean_value(deep))


def test_a_value_goes_whose_name_says_that_it_is_a_secret() -> None:
    told = {
        "api_key": "abc",
        "DB_PASSWORD": "x y",
        "token": 7,
        "tokens": "a b",
        "n": {"pwd": "qqq"},
    }
    assert clean_value(told) == {
        "api_key": REDACTED,
        "DB_PASSWORD": REDACTED,
        "token": 7,
        "tokens": "a b",
        "n": {"pwd": REDACTED},
    }


def test_numbers_of_no_world_become_unknown_and_long_lists_are_cut() -> None:
    found = clean_value({"a": 10**400, "b": -(2**70), "c": 2**40, "d": list(range(10**5))})
    assert isinstance(found, dict)
    assert (found["a"], found["b"], found["c"]) == (None, None, 2**40)
    assert len(found["d"]) == 5000
