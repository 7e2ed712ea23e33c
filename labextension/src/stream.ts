/**
 * The websocket of the page. Sends which kernel to observe, emits each message, and reconnects with increasing
 * delays when the connection is lost. Detecting a silent socket is up to the caller.
 */
import type { ServerConnection } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { IWatch, StreamMessage } from './wire';

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;

/** After a suspend, the network may drop the packets that open a socket. */
const OPENING_MS = 10_000;

export class GuardStream implements IDisposable {
  constructor(private readonly _settings: GuardStream.ISettings) {}

  /** True when the socket opened, false when it closed. */
  get connectionChanged(): ISignal<this, boolean> {
    return this._connectionChanged;
  }

  get message(): ISignal<this, StreamMessage> {
    return this._message;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Open the socket and keep it open. */
  start(): void {
    if (this._isDisposed || this._socket !== null || this._timer !== null) {
      return;
    }
    this._open();
  }

  /** Set the request. It is sent immediately if the socket is open, and whenever the socket opens. */
  watch(wanted: IWatch): void {
    const text = JSON.stringify({ type: 'watch', ...wanted });
    if (text === this._wanted) {
      return;
    }
    this._wanted = text;
    if (this._isOpen) {
      this._socket?.send(text);
    }
  }

  /** Close the socket, which may be dead, and open another one immediately. */
  reopen(): void {
    if (this._isOpen) {
      this._drop();
      this._connectionChanged.emit(false);
      this._open();
    }
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._clearTimer();
    this._drop();
    Signal.clearData(this);
  }

  private _open(): void {
    const { wsUrl, appendToken, token, WebSocket: Socket } = this._settings;
    const url = new URL('tfguard/api/stream', wsUrl.endsWith('/') ? wsUrl : `${wsUrl}/`);
    if (appendToken && token !== '') {
      url.searchParams.set('token', token);
    }
    const socket = new Socket(url.href);
    this._socket = socket;
    this._timer = setTimeout(() => this._lose(), OPENING_MS);
    socket.onopen = () => {
      this._clearTimer();
      this._isOpen = true;
      this._wait = FIRST_WAIT_MS;
      if (this._wanted !== null) {
        socket.send(this._wanted);
      }
      this._connectionChanged.emit(true);
    };
    socket.onmessage = event => this._message.emit(JSON.parse(String(event.data)) as StreamMessage);
    socket.onclose = () => this._lose();
  }

  private _lose(): void {
    const wasOpen = this._isOpen;
    this._drop();
    if (wasOpen) {
      this._connectionChanged.emit(false);
    }
    this._openLater();
  }

  private _openLater(): void {
    if (this._isDisposed) {
      return;
    }
    this._clearTimer();
    this._timer = setTimeout(() => this._open(), this._wait);
    this._wait = Math.min(this._wait * 2, LONGEST_WAIT_MS);
  }

  private _clearTimer(): void {
    if (this._timer !== null) {
      clearTimeout(this._timer);
      this._timer = null;
    }
  }

  private _drop(): void {
    const socket = this._socket;
    this._socket = null;
    this._isOpen = false;
    if (socket !== null) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
  }

  private readonly _connectionChanged = new Signal<this, boolean>(this);
  private readonly _message = new Signal<this, StreamMessage>(this);
  private _socket: WebSocket | null = null;
  private _timer: ReturnType<typeof setTimeout> | null = null;
  private _wait = FIRST_WAIT_MS;
  private _wanted: string | null = null;
  private _isOpen = false;
  private _isDisposed = false;
}

export namespace GuardStream {
  /** The part of the server settings that a socket needs. */
  export type ISettings = Pick<
    ServerConnection.ISettings,
    'wsUrl' | 'appendToken' | 'token' | 'WebSocket'
  >;
}
