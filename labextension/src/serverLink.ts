/** Connection state of the server, from requests and the stream. */
import { ApiError, messageOf } from './api';

/**
 * `absent`: Jupyter runs without our server extension. `away`: no response, or a silent stream; the page keeps
 * the last values. `locked`: access denied. `refused`: any other error.
 */
export type ServerState = 'connecting' | 'ok' | 'absent' | 'away' | 'locked' | 'refused';

/** Whether our server extension is installed, as far as known; a server that does not respond counts as yes. */
export function hasServerPart(server: ServerState): boolean {
  return server === 'ok' || server === 'away';
}

export class ServerLink {
  get state(): ServerState {
    return this._state;
  }

  /** Error message of the server, or null. */
  get trouble(): string | null {
    return this._trouble;
  }

  /** Whether this page may have missed messages. */
  get isBehind(): boolean {
    return this._isBehind;
  }

  /** A request succeeded. While the stream is closed, the values stay old. */
  answer(): void {
    this._state = this._isCut ? 'away' : 'ok';
    this._isBehind = this._isCut;
    this._trouble = null;
  }

  /** A request failed. */
  fail(error: unknown): void {
    const failure = error instanceof ApiError ? error.failure : 'refused';
    if (this._isCut && failure !== 'locked' && failure !== 'absent') {
      // No response, or a proxy responded while the server starts.
      this._state = 'away';
      this._trouble = null;
      return;
    }
    this._state = failure;
    this._trouble = messageOf(error);
  }

  /** The stream has closed. */
  lose(): void {
    this._state = 'away';
    this._isBehind = this._isCut = true;
  }

  /** The stream is open again. */
  open(): void {
    this._isCut = false;
  }

  /** The stream received a message. Returns whether the state was not `ok` before. */
  hear(): boolean {
    const wasGone = this._state !== 'ok';
    this._state = 'ok';
    return wasGone;
  }

  private _isBehind = false;
  private _isCut = false;
  private _state: ServerState = 'connecting';
  private _trouble: string | null = null;
}
