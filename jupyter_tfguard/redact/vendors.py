"""Keys that are recognised by the prefix that their vendor publishes, wherever they are."""

from __future__ import annotations

# Each is tried only where a word begins.
KEYS = (
    # models and data
    r"hf_[A-Za-z0-9]{16,}", r"api_org_[A-Za-z0-9]{20,}", r"sk-(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{16,}", r"pk-lf-[a-f0-9-]{20,}",
    r"sess-[A-Za-z0-9]{30,}", r"gsk_[A-Za-z0-9]{20,}", r"xai-[A-Za-z0-9]{20,}", r"pplx-[A-Za-z0-9]{20,}",
    r"nvapi-[A-Za-z0-9_-]{20,}", r"r8_[A-Za-z0-9]{16,}", r"csk-[a-z0-9]{30,}", r"tgp_v1_[A-Za-z0-9_-]{30,}",
    r"fw_[A-Za-z0-9]{20,}", r"jina_[A-Za-z0-9]{40,}", r"rpa_[A-Za-z0-9]{30,}", r"tvly-[A-Za-z0-9-]{20,}",
    r"lsv2_(?:pt|sk)_[a-f0-9]{20,}(?:_[a-f0-9]+)?", r"wandb_v1_[A-Za-z0-9_-]{30,}", r"pcsk_[A-Za-z0-9_]{30,}",
    r"rf_[A-Za-z0-9]{20,}", r"KGAT_[a-f0-9]{20,}", r"pnu_[A-Za-z0-9]{30,}", r"dbt[cu]_[A-Za-z0-9_-]{30,}",
    r"esecret_[A-Za-z0-9]{20,}", r"a[ks]-(?=[A-Za-z]{0,40}[0-9])(?=[a-z0-9]{0,40}[A-Z])[A-Za-z0-9]{22,}", r"pa-[A-Za-z0-9_-]{40,}", r"bce-v3/[A-Za-z0-9/-]{30,}",
    # code and packages
    r"gh[pousr]_[A-Za-z0-9]{20,}", r"github_pat_[A-Za-z0-9_]{10,}", r"gl[a-z]{2,6}-(?=[A-Za-z_.-]{0,60}[0-9])[A-Za-z0-9_.-]{16,}",
    r"npm_[A-Za-z0-9]{16,}", r"pypi-[A-Za-z0-9_-]{20,}", r"rubygems_[a-f0-9]{40,}", r"dckr_[op]at_[A-Za-z0-9_-]{20,}",
    r"oy2[a-z0-9]{43}", r"AT(?:ATT3|CTT3|STT3)[A-Za-z0-9_=.-]{20,}", r"ATBB[A-Za-z0-9]{20,}", r"sq[apu]_[a-f0-9]{40}",
    r"CCI[A-Z]{3}_[A-Za-z0-9_]{20,}", r"bkua_[a-f0-9]{30,}", r"sgp_[A-Za-z0-9_]{30,}", r"pul-[a-f0-9]{30,}",
    r"ntn_[A-Za-z0-9]{40,}", r"secret_[A-Za-z0-9]{40,}", r"secret_[a-z0-9]{1,20}_[A-Za-z0-9]{20,}(?:\.[A-Za-z0-9]{20,})?",
    r"cio(?=[A-Za-z]{0,30}[0-9])[A-Za-z0-9]{32}(?![A-Za-z0-9])", r"lin_(?:api|oauth)_[A-Za-z0-9]{20,}", r"figd_[A-Za-z0-9_-]{20,}",
    r"PMAK-[a-f0-9-]{30,}",
    # clouds
    r"(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AGPA|AIPA|ANPA|ANVA|APKA)[0-9A-Z]{16}", r"AIza[0-9A-Za-z_-]{16,}",
    r"ya29\.[0-9A-Za-z_-]{20,}", r"1//0[0-9A-Za-z_-]{30,}", r"GOCSPX-[A-Za-z0-9_-]{20,}", r"LTAI[A-Za-z0-9]{12,}",
    r"AKID[A-Za-z0-9]{28,}", r"AKLT[A-Za-z0-9]{20,}", r"do[opr]_v1_[a-f0-9]{16,}", r"dapi[a-f0-9]{16,}",
    r"dp\.[a-z]{2}\.[A-Za-z0-9]{30,}", r"hv[sbr]\.[A-Za-z0-9_-]{20,}", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,}",
    r"tskey-[A-Za-z0-9-]{20,}", r"v1\.0-[a-f0-9]{20,}-[a-f0-9]{60,}", r"sb[a-z]?_(?:secret_|publishable_)?[A-Za-z0-9_-]{30,}",
    r"sbp_[a-f0-9]{40}", r"vc[pkri]_[A-Za-z0-9]{20,}", r"vercel_[A-Za-z0-9_]{20,}", r"nfp_[A-Za-z0-9]{30,}",
    r"HRKU-[A-Za-z0-9_-]{30,}", r"fm[12]_[A-Za-z0-9+/=_-]{30,}", r"fo1_[A-Za-z0-9_-]{30,}", r"rnd_[A-Za-z0-9]{20,}",
    r"napi_[a-z0-9]{30,}", r"npg_(?=[A-Za-z]{0,30}[0-9])[A-Za-z0-9]{10,}", r"[A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~.-]{30,}",
    r"pscale_[a-z]{2,5}_[A-Za-z0-9_.-]{30,}", r"mdb_sa_sk_[A-Za-z0-9_-]{30,}",
    r"y[0-3]_[A-Za-z0-9_-]{30,}", r"AQVN[A-Za-z0-9_-]{30,}", r"apify_api_[A-Za-z0-9]{20,}", r"CFPAT-[A-Za-z0-9_-]{30,}",
    # messages, money, watching
    r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}", r"xapp-[A-Za-z0-9-]{10,}", r"SG\.[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]*)?",
    r"SK[0-9a-f]{24,}", r"key-[0-9a-f]{16,}", r"re_[A-Za-z0-9]{6,}_[A-Za-z0-9]{16,}", r"xkeysib-[a-f0-9]{40,}[A-Za-z0-9-]*",
    r"[0-9a-f]{32}-us[0-9]{1,2}", r"[srp]k_(?:live|test)_[A-Za-z0-9]{16,}", r"whsec_[A-Za-z0-9+/=]{16,}",
    r"sk_[a-f0-9]{40,}", r"shp[a-z]{2}_[0-9a-fA-F]{16,}", r"shippo_(?:live|test)_[a-f0-9]{30,}",
    r"sq0[a-z]{3}-[A-Za-z0-9_-]{20,}", r"EAA[A-Za-z0-9_-]{50,}", r"sntry[a-z]_[A-Za-z0-9_=+/-]{20,}",
    r"NR(?:AK|II|JS|AA|BR)-[A-Za-z0-9]{18,}", r"glsa_[A-Za-z0-9_]{20,}", r"ph[cxs]_[A-Za-z0-9]{30,}",
    r"pat-(?:na|eu)[0-9]-[a-f0-9-]{30,}", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{40,}", r"sl\.(?:[A-Za-z0-9]{1,2}\.)?[A-Za-z0-9_-]{60,}",
    r"dt0[a-z][0-9]{2}\.[A-Z0-9]{20,}\.[A-Z0-9]{40,}", r"ops_ey[A-Za-z0-9_-]{40,}", r"aio_[A-Za-z0-9]{28}",
    r"[ps]k\.eyJ[A-Za-z0-9_-]{30,}(?:\.[A-Za-z0-9_-]{10,})?", r"tfp_[A-Za-z0-9_]{30,}",
    r"AGE-SECRET-KEY-1[0-9A-Z]{10,}",
    # DeepL; Zhipu. A UUID and a hash are the kernel and the session in Jupyter's log.
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}:fx(?![A-Za-z0-9])",
    r"[0-9a-f]{32}\.(?=[A-Za-z]{0,16}[0-9])(?=[a-z0-9]{0,16}[A-Z])[A-Za-z0-9]{16}(?![A-Za-z0-9.])",
    # hashes of passwords: bcrypt, crypt, Argon2
    r"\$(?:2[aby]|[156y]|apr1|argon2\w{0,3}|pbkdf2[\w-]{0,12})\$[A-Za-z0-9./$,=+-]{20,}",
    # JSON web token, Telegram, Discord
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]{4,})?",
    r"(?:bot)?[0-9]{8,10}:AA[A-Za-z0-9_-]{16,}",
    r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
    # A short prefix and a long text of upper and lower case with digits: keys of vendors that are not known yet.
    r"[a-z][a-z0-9]{1,11}[_-](?=[A-Za-z]{0,40}[0-9][A-Za-z]{0,40}[0-9])(?=[A-Z0-9]{0,40}[a-z])(?=[a-z0-9]{0,40}[A-Z])"
    r"[A-Za-z0-9]{30,}(?![A-Za-z0-9_./-])",
)  # fmt: skip
