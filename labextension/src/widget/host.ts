/** The part of anywidget's interface that the panel uses. */
export interface IWidgetModel {
  get(name: string): unknown;
  send(content: unknown): void;
  on(event: 'msg:custom', callback: (content: unknown) => void): void;
  off(event: 'msg:custom', callback: (content: unknown) => void): void;
  /** JupyterLab's and VS Code's managers know their kernel; others do not tell. */
  readonly widget_manager?: { readonly kernel?: IKernel | null } | null;
}

/** The part of JupyterLab's kernel connection that a request needs. VS Code's has the same methods, without subshells. */
export interface IKernel {
  readonly clientId?: string;
  readonly username?: string;
  /** From JupyterLab 4.4 on. */
  readonly supportsSubshells?: boolean;
  sendControlMessage?(message: object, expectsReply: boolean, disposeOnDone: boolean): IFuture;
  createComm(target: string): IComm;
}

export interface IMessage<T> {
  readonly content: T;
}

export interface IFuture {
  onReply: (message: IMessage<unknown>) => void;
  dispose(): void;
}

export interface IComm {
  /** Done when the comm has its subshell: opened before, it would be answered after the cell. */
  readonly subshellStarted?: Promise<void>;
  onMsg: (message: IMessage<{ readonly data: unknown }>) => void;
  open(): unknown;
  send(data: object): unknown;
  close(): unknown;
}
