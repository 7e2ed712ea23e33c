/** The one door to the server extension's REST routes. */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import { ShapeError } from './check';
import {
  readCrashes,
  readExportPreview,
  readOptions,
  readReport,
  readStacks,
  readStatus
} from './wire';
import type { CrashEntry, ExportPreview, Option, Report, Status } from './wire';

/**
 * Why a request brought nothing.
 *
 * `absent`: the server has no such route or report; of `status` that means that the server part of
 * the extension is not loaded. `away`: no answer at all. `locked`: this page is not, or no longer,
 * let in. `refused`: another answer that says no, or one that cannot be read.
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
    return this._json('status', readStatus);
  }

  /** Deaths, newest first. */
  async crashes(): Promise<CrashEntry[]> {
    return this._json('crashes', readCrashes);
  }

  /** Options of the guard, as the server has them. */
  async options(): Promise<Option[]> {
    return this._json('options', readOptions);
  }

  async report(id: string): Promise<Report> {
    return this._json(`crashes/${encodeURIComponent(id)}`, readReport);
  }

  async markdown(id: string): Promise<string> {
    return (await this._request(`crashes/${encodeURIComponent(id)}/markdown`)).text();
  }

  /** What a redacted bundle of a report would hold. */
  async preview(id: string): Promise<ExportPreview> {
    return this._json(`crashes/${encodeURIComponent(id)}/bundle/preview`, readExportPreview);
  }

  /** The same as a zip. */
  async bundle(id: string): Promise<Blob> {
    return (await this._request(`crashes/${encodeURIComponent(id)}/bundle`)).blob();
  }

  async markRead(id: string): Promise<void> {
    await this._request(`crashes/${encodeURIComponent(id)}/read`, { method: 'POST' });
  }

  /** Remove a report for good. */
  async forget(id: string): Promise<void> {
    await this._request(`crashes/${encodeURIComponent(id)}`, { method: 'DELETE' });
  }

  /** What every thread of a running kernel is doing; it takes some seconds at most. */
  async stacks(kernelId: string): Promise<string[]> {
    const route = `kernels/${encodeURIComponent(kernelId)}/stacks`;
    return this._json(route, readStacks, { method: 'POST' });
  }

  private async _json<T>(
    route: string,
    read: (value: unknown) => T,
    init: RequestInit = {}
  ): Promise<T> {
    const response = await this._request(route, init);
    try {
      return read(await response.json());
    } catch (error) {
      if (error instanceof ShapeError || error instanceof SyntaxError) {
        throw new ApiError('refused', error.message);
      }
      throw error;
    }
  }

  private async _request(route: string, init: RequestInit = {}): Promise<Response> {
    const url = `${URLExt.join(this.settings.baseUrl, 'tfguard', 'api')}/${route}`;
    let response: Response;
    try {
      response = await ServerConnection.makeRequest(url, init, this.settings);
    } catch (error) {
      throw new ApiError('away', error instanceof Error ? error.message : String(error));
    }
    if (!response.ok) {
      throw new ApiError(FAILURES[response.status] ?? 'refused', await reason(response));
    }
    return response;
  }
}

/** What the server says about its refusal, or the status line. */
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
