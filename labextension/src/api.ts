/** All requests to the server extension's REST routes. */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import type { CrashEntry, ExportChoices, ExportPreview, Option, Report, Status } from './wire';

/**
 * Why a request failed.
 *
 * `absent`: the server has no such route or report; for `status`, the server extension is not loaded.
 * `away`: no response. `locked`: access denied, for example after the login expired. `refused`: any other
 * error, or a response that cannot be parsed.
 */
export type Failure = 'absent' | 'away' | 'locked' | 'refused';

const FAILURES: Readonly<Record<number, Failure>> = { 401: 'locked', 403: 'locked', 404: 'absent' };

export class ApiError extends Error {
  constructor(
    readonly failure: Failure,
    message: string
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

export class GuardApi {
  constructor(readonly settings: ServerConnection.ISettings) {}

  async status(): Promise<Status> {
    return this._json('status');
  }

  /** Crashes, newest first. */
  async crashes(): Promise<CrashEntry[]> {
    return (await this._json<{ crashes: CrashEntry[] }>('crashes')).crashes;
  }

  /** Options of the guard, as the server has them. */
  async options(): Promise<Option[]> {
    return (await this._json<{ options: Option[] }>('options')).options;
  }

  async report(id: string): Promise<Report> {
    return this._json(`crashes/${encodeURIComponent(id)}`);
  }

  async markdown(id: string): Promise<string> {
    return (await this._request(`crashes/${encodeURIComponent(id)}/markdown`)).text();
  }

  /** Contents of the redacted bundle of a report. */
  async preview(id: string, choices: ExportChoices): Promise<ExportPreview> {
    return this._json(`crashes/${encodeURIComponent(id)}/bundle/preview`, chosen(choices));
  }

  /** The redacted bundle as a zip file. */
  async bundle(id: string, choices: ExportChoices): Promise<Blob> {
    const route = `crashes/${encodeURIComponent(id)}/bundle`;
    return (await this._request(route, chosen(choices))).blob();
  }

  async markRead(id: string): Promise<void> {
    await this._request(`crashes/${encodeURIComponent(id)}/read`, { method: 'POST' });
  }

  /** Delete a report permanently. */
  async forget(id: string): Promise<void> {
    await this._request(`crashes/${encodeURIComponent(id)}`, { method: 'DELETE' });
  }

  /** Python stacks of all threads of a running kernel, as faulthandler writes them. Takes a few seconds at most. */
  async stacks(kernelId: string): Promise<string[]> {
    const route = `kernels/${encodeURIComponent(kernelId)}/stacks`;
    return (await this._json<{ lines: string[] }>(route, { method: 'POST' })).lines;
  }

  private async _json<T>(route: string, init: RequestInit = {}): Promise<T> {
    const response = await this._request(route, init);
    try {
      return (await response.json()) as T;
    } catch (error) {
      throw new ApiError('refused', messageOf(error));
    }
  }

  private async _request(route: string, init: RequestInit = {}): Promise<Response> {
    const url = `${URLExt.join(this.settings.baseUrl, 'tfguard', 'api')}/${route}`;
    let response: Response;
    try {
      response = await ServerConnection.makeRequest(url, init, this.settings);
    } catch (error) {
      throw new ApiError('away', messageOf(error));
    }
    if (!response.ok) {
      throw new ApiError(FAILURES[response.status] ?? 'refused', await reason(response));
    }
    return response;
  }
}

/** The request with the choices of an export in its body: servers log addresses. */
function chosen(choices: ExportChoices): RequestInit {
  return { method: 'POST', body: JSON.stringify(choices) };
}

/** Message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The server's error message, else the status line. */
async function reason(response: Response): Promise<string> {
  const fallback = `${response.status} ${response.statusText}`;
  try {
    const body: unknown = await response.json();
    const message = (body as { message?: unknown } | null)?.message;
    return typeof message === 'string' && message !== '' ? message : fallback;
  } catch {
    return fallback;
  }
}
