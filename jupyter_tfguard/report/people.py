"""Forms in which logs and commands name people and addresses: a table of patterns, each with what replaces it."""

from __future__ import annotations

import re

USER = "[user]"
HOST = "[host]"
MAIL = "[mail]"

_NAME = r"[A-Za-z_][\w.-]{0,31}"
# Not names: words of sentences and of code, and accounts that every machine has.
_NOBODY = (
    r"(?!(?:in|is|and|or|not|for|on|at|to|of|if|has|with|code|input|defined|data|id|ids|name|names|root|nobody|daemon|www-data|user|users"
    r"|ubuntu|jovyan|docker|admin|share|shared|None|null|self)(?![\w-]))"
)
# After a matrix product, x@y.T, and in names of files and of services, no domain follows.
_NO_DOMAIN = (
    r"(?!\.?(?:self|np|tf|jnp|model|layer)\.)(?![\w.-]{0,200}\.(?:T|mT|H|py|so|json|png|jpe?g|svg|h5|npy|keras|whl|gz|zip|service|slice|scope|socket"
    r"|target|timer|mount|shape|weights?|kernel|bias|data|numpy|grad|sum|mean|dot|transpose|conj|value|astype|reshape)(?![\w-]))"
)
_LATER = r"[^\n|;]{0,120}?[ '\"]"

# Patterns with group 1 before what goes, and group 2 after it, where there is one.
PEOPLE: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (
            rf"(?<![\w.+%-])(?:\[user\]|[\w.+%-]{{2}})(?:[\w.+%-]|\[user\]){{0,62}}(?<![.])@{_NO_DOMAIN}(?:[\w-]{{1,63}}|\[host\])(?:\.[\w-]{{1,63}}){{0,6}}"
            r"\.[A-Za-z]{2,24}(?![\w(\[-])",
            MAIL,
        ),
        # ssh ann@node7, and a prompt: ann@node7:~/x$
        (
            rf"(\b(?:ssh|scp|sftp|rsync|mosh|ssh-copy-id|sshfs)\b{_LATER}){_NAME}@[\w.-]{{1,100}}",
            rf"\g<1>{USER}@{HOST}",
        ),
        (
            rf"((?m:^)(?:\([\w.-]{{1,40}}\) )?){_NAME}@[\w.-]{{1,60}}(?=:[~/][^\n$#]{{0,200}}[$#] )",
            rf"\g<1>{USER}@{HOST}",
        ),
        # USER=ann   uid=1001(ann)   drwx------ 2 ann staff   squeue -u ann   error: user ann exceeded
        (
            rf"((?<![A-Za-z])(?:USER|LOGNAME|USERNAME|SUDO_USER|JUPYTERHUB_USER|NB_USER|SLURM_JOB_USER|USERPROFILE|OWNER)['\"]?\]?[ \t]{{0,2}}[=:][ \t]{{0,2}}['\"]?)"
            rf"{_NOBODY}{_NAME}(?![\w./({{\[-])",
            rf"\g<1>{USER}",
        ),
        (rf"((?<![A-Za-z])[ug]id=\d{{1,10}}\(){_NOBODY}{_NAME}(?=\))", rf"\g<1>{USER}"),
        (
            rf"((?m:^)[bcdlps-][rwxsStT-]{{9}}[.+@]?[ \t]{{1,8}}\d{{1,9}}[ \t]{{1,8}}){_NOBODY}{_NAME}(?=[ \t])",
            rf"\g<1>{USER}",
        ),
        (
            rf"(\b(?:squeue|sacct|scancel|srun|sbatch|salloc|sreport|sinfo|qstat|qdel|bjobs|condor_q|ps|pkill|pgrep|sudo|su|chown)\b{_LATER[:-7]}"
            rf" (?:-u ?|-U ?|--user[= ]|--uid[= ])){_NOBODY}{_NAME}(?![\w(:=-])",
            rf"\g<1>{USER}",
        ),
        (
            rf"(\b(?:error: |[jJ]ob of |[oO]wned by |[sS]ubmitted by |[lL]ogged in as )user ['\"]?){_NOBODY}{_NAME}(?![\w(:=.-])",
            rf"\g<1>{USER}",
        ),
        (rf"(\buser ['\"]){_NOBODY}{_NAME}(?=['\"])", rf"\g<1>{USER}"),
        # /scratch/users/ann/x   ~ann/x
        (
            rf"((?<![\w.:/-])(?:/[\w.-]{{1,64}}){{0,4}}/users/){_NOBODY}(?![\w.-]{{1,64}}\.(?:py|ipynb|html?|js|ts|csv|json)(?!\w)){_NAME}(?![\w.-])",
            rf"\g<1>{USER}",
        ),
        (rf"((?<![\w/.~-])~){_NOBODY}{_NAME}(?=/)", rf"\g<1>{USER}"),
    )
)
