/** Whether the server answers this page: what the requests and the stream say of it. */
import { ApiError, messageOf } from './api';

/**
 * `absent`: Jupyter runs, but without our server part. `away`: no answer, or the stream fell silent;
 * what was last seen stays. `locked`: this page is not let in. `refused`: another answer that says no.
 */
export type ServerState = 'connecting' | 'ok' | 'absent' | 'away' | 'locked' | 'refused';

/** Whether our server part runs, as far as is known: it does also while no answer comes. */
export function hasServerPart(server: ServerState): boolean {
  return server === 'ok' || server === 'away';
}

export class ServerLink {
  get state(): ServerState {
    return this._state;
  }

  /** What the server said when it refused; null where all is well. */
  get trouble(): string | null {
    return this._trouble;
  }

  /** Whether something may have happened that this page did not hear of. */
  get isBehind(): boolean {
    return this._isBehind;
  }

  /** A request was answered. While the stream is closed that makes no value fresh. */
  answer(): void {
    this._state = this._isCut ? 'away' : 'ok';
    this._isBehind = this._isCut;
    this._trouble = null;
  }

  /** A request failed. */
  fail(error: unknown): void {
    const failure = error instanceof ApiError ? error.failure : 'refused';
    if (this._isCut && failure !== 'locked' && failure !== 'absent') {
      // Nobody answered, or a proxy did while the server starts.
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

  /** The stream brought a message; whether the server was thought to be gone. */
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
