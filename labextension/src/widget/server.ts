/** The Jupyter server of the page, as JupyterLab, Notebook 7 and the classic Notebook tell it. */

export interface IJupyterServer {
  /** Ends with a slash. */
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Null on a page that no Jupyter server made: VS Code, Colab. */
export function jupyterServer(): IJupyterServer | null {
  const told = configuration();
  if (told === null || !isOfThisPage(told[0])) {
    return null;
  }
  const [baseUrl, token] = told;
  const xsrf = /(?:^|; )_xsrf=([^;]+)/.exec(document.cookie)?.[1];
  return {
    baseUrl: baseUrl.endsWith('/') ? baseUrl : `${baseUrl}/`,
    headers: {
      ...(token ? { Authorization: `token ${token}` } : {}),
      ...(xsrf ? { 'X-XSRFToken': xsrf } : {})
    }
  };
}

/** VS Code gives the folder of third-party widgets, at another address, the name that the classic Notebook gives its server. */
function isOfThisPage(url: string): boolean {
  try {
    return new URL(url, location.href).origin === location.origin;
  } catch {
    return false;
  }
}

function configuration(): [string, string] | null {
  const text = document.getElementById('jupyter-config-data')?.textContent;
  if (text) {
    try {
      const { baseUrl, token } = JSON.parse(text) as Record<string, unknown>;
      return typeof baseUrl === 'string' ? [baseUrl, typeof token === 'string' ? token : ''] : null;
    } catch {
      return null;
    }
  }
  const { baseUrl, jupyterApiToken } = document.body.dataset;
  return baseUrl === undefined ? null : [baseUrl, jupyterApiToken ?? ''];
}
