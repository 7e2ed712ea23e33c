/** How the page and the server stand, from what is heard of the server and what is not. */
import { ApiError } from './api';

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

  /** What the server said when it refused, or what could not be read; null where all is well. */
  get trouble(): string | null {
    return this._trouble ?? this._unreadable;
  }

  /** Whether something may have happened that this page did not hear of. */
  get isBehind(): boolean {
    return this._isBehind;
  }

  /** The server was asked, and answered. Without the stream that makes nothing fresh. */
  answer(): void {
    this._state = this._isCut ? 'away' : 'ok';
    this._isBehind = this._isCut;
    this._trouble = null;
  }

  /** The server was asked in vain. */
  fail(error: unknown): void {
    const failure = error instanceof ApiError ? error.failure : 'refused';
    if (this._isCut && failure !== 'locked' && failure !== 'absent') {
      // Nobody answered, or a proxy did while the server starts.
      this._state = 'away';
      this._trouble = null;
      return;
    }
    this._state = failure;
    this._trouble = error instanceof Error ? error.message : String(error);
  }

  /** The stream has closed. */
  lose(): void {
    this._state = 'away';
    this._isBehind = this._isCut = true;
  }

  /** The stream is open again; what it brings, or an answer, tells more. */
  open(): void {
    this._isCut = false;
  }

  /** The stream brought something that can be read; whether the server was thought to be gone. */
  hear(): boolean {
    const wasGone = this._state !== 'ok';
    this._state = 'ok';
    return wasGone;
  }

  /** Something of the stream could not be read, in words; null: a whole message could. */
  misread(what: string | null): void {
    this._unreadable = what;
  }

  private _isBehind = false;
  private _isCut = false;
  private _state: ServerState = 'connecting';
  private _trouble: string | null = null;
  private _unreadable: string | null = null;
}
