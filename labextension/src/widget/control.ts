/**
 * Requests to the kernel while a cell runs. A widget's own messages are answered once no cell runs, so these
 * are asked first: the server, which has a way of its own; the control channel of the page's connection to the
 * kernel, as in VS Code; a comm on a subshell, where a server lets only common kinds of messages through.
 */
import type { IKernel, IMessage } from './host';
import { jupyterServer } from './server';
import { readAnswer } from './state';
import type { Answer } from './state';

const COMM_TARGET = 'jupyter_tfguard.control';
/** Type of a request on the control channel, as in `control_words.py`. */
const CONTROL_REQUEST = 'tfguard_request';
const CONTROL_SECONDS = 3;
const COMM_SECONDS = 5;

export type ControlRequest =
  | { readonly request: 'here'; readonly panel: string; readonly view: string }
  | { readonly request: 'rate'; readonly hertz: number };

/** Ask the kernel through the server; null where no server part of ours answers. */
export async function askServer(
  kernelId: string | null,
  request: ControlRequest
): Promise<Answer | null> {
  const server = jupyterServer();
  if (server === null || kernelId === null) {
    return null;
  }
  const url = `${server.baseUrl}tfguard/api/kernels/${encodeURIComponent(kernelId)}/control`;
  try {
    const response = await fetch(url, {
      method: 'POST',
      credentials: 'same-origin',
      headers: { 'Content-Type': 'application/json', ...server.headers },
      body: JSON.stringify(request)
    });
    // 409: the kernel was asked and gave no answer. All else: there is nobody here to ask.
    if (!response.ok && response.status !== 409) {
      return null;
    }
    return readAnswer({ status: response.ok ? 'ok' : 'error', ...(await response.json()) });
  } catch {
    return null;
  }
}

/** Ask the kernel on the control channel; null where the page has none, or no answer comes in time. */
export async function askControlChannel(
  kernel: IKernel | null | undefined,
  request: ControlRequest
): Promise<Answer | null> {
  if (kernel?.sendControlMessage === undefined) {
    return null;
  }
  try {
    const message = controlMessage(kernel, request);
    const future = kernel.sendControlMessage(message, true, true);
    try {
      const { content } = await within<IMessage<unknown>>(CONTROL_SECONDS, take => {
        future.onReply = take;
      });
      return readAnswer(content);
    } finally {
      future.dispose();
    }
  } catch {
    return null;
  }
}

/** Ask the kernel through a comm on a subshell; null where the page or the kernel has none. */
export async function askSubshell(
  kernel: IKernel | null | undefined,
  request: ControlRequest
): Promise<Answer | null> {
  if (kernel?.supportsSubshells !== true) {
    return null;
  }
  try {
    const comm = kernel.createComm(COMM_TARGET);
    try {
      if (comm.subshellStarted === undefined) {
        return null;
      }
      await comm.subshellStarted;
      const { content } = await within<IMessage<{ readonly data: unknown }>>(COMM_SECONDS, take => {
        comm.onMsg = take;
        comm.open();
        comm.send(request);
      });
      return readAnswer(content.data);
    } finally {
      comm.close();
    }
  } catch {
    return null;
  }
}

function controlMessage({ clientId, username }: IKernel, content: ControlRequest): object {
  return {
    channel: 'control',
    header: {
      msg_id: `tfguard-${Math.random().toString(36).slice(2)}`,
      msg_type: CONTROL_REQUEST,
      session: clientId,
      username,
      date: new Date().toISOString(),
      version: '5.3'
    },
    parent_header: {},
    metadata: {},
    content,
    buffers: []
  };
}

/** What `begin` is given; rejected when that takes longer. */
function within<T>(seconds: number, begin: (take: (value: T) => void) => void): Promise<T> {
  let timer: ReturnType<typeof setTimeout>;
  return new Promise<T>((take, reject) => {
    timer = setTimeout(() => reject(new Error('no answer')), seconds * 1000);
    begin(take);
  }).finally(() => clearTimeout(timer));
}
