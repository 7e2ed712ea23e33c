/**
 * What VS Code's Jupyter extension does in a notebook's web view, as far as a widget can tell: a kernel connection whose
 * web socket ends at the extension, a loader that finds third-party widgets through requirejs, and a view per output.
 */
import { ServerConnection } from '@jupyterlab/services';
import { KernelConnection } from '@jupyterlab/services/lib/kernel/default';

const WIDGET = 'application/vnd.jupyter.widget-view+json';
const displayed = new Map();
window.failures = [];

/** A promise per model: done once the message that displays it was seen. */
function shown(id) {
  if (!displayed.has(id)) {
    let done;
    const promise = new Promise(resolve => (done = resolve));
    displayed.set(id, { promise, done });
  }
  return displayed.get(id);
}

/** Connect as the extension's client. What the page sends is given to `toExtension`; `fromExtension` takes the rest. */
window.connect = async ({ clientId, model, resources }) => {
  document.body.dataset.baseUrl = resources;
  let socket;
  let isSending = true;
  class ExtensionSocket {
    constructor() {
      socket = this;
    }
    send(text) {
      if (isSending) {
        void window.toExtension(text);
      }
    }
    close() {}
  }
  const serverSettings = ServerConnection.makeSettings({ WebSocket: ExtensionSocket });
  const real = new KernelConnection({ serverSettings, clientId, model, handleComms: true });
  // The extension asks for the kernel's info, not the page.
  real.requestKernelInfo = () => Promise.resolve();
  socket.onopen({ target: socket });
  delete real.requestKernelInfo;
  real.iopubMessage.connect((_, message) => {
    const view = message.content?.data?.[WIDGET];
    if (view !== undefined) {
      shown(view.model_id).done();
    }
  });
  window.fromExtension = texts => texts.forEach(data => socket.onmessage({ target: socket, data }));
  window.mirror = message => {
    isSending = false;
    real.sendShellMessage(message, false, false);
    isSending = true;
  };

  const { activate } = await import('/ipywidgets.js');
  activate();
  window.vscIPyWidgets8.load();
  const registered = new Set();
  const loader = {
    widgetsRegisteredInRequireJs: registered,
    loadWidgetScript: async name => {
      window.requirejs.config({
        baseUrl: resources,
        paths: { [name]: `${resources}nbextensions/${name}/index` }
      });
      registered.add(name);
    },
    errorHandler: (...told) => window.failures.push(told.map(String).join(' ')),
    successHandler: () => undefined
  };
  window.kernel = real;
  window.manager = new window.vscIPyWidgets.WidgetManager(proxyOf(real), undefined, loader, () => {});
};

/** The extension's kernel has the methods of JupyterLab's before there were subshells. */
function proxyOf(real) {
  return new Proxy(real, {
    get: (target, name) => {
      const found = /subshell/i.test(String(name)) ? undefined : target[name];
      return typeof found === 'function' ? found.bind(target) : found;
    }
  });
}

/** Draw one output; returns what takes it away. */
window.renderOutput = async view => {
  const cell = document.createElement('div');
  cell.className = 'cell-output-ipywidget-background';
  cell.tabIndex = 0;
  document.getElementById('container').append(cell);
  await shown(view.model_id).promise;
  const model = await window.manager.get_model(view.model_id);
  const drawn = await window.manager.create_view(model, { el: cell });
  const widget = await window.manager.display_view(view, drawn, { node: cell });
  window.disposeOutput = () => {
    widget.dispose();
    cell.remove();
  };
};

window.paint = (kind, colours) => {
  document.documentElement.removeAttribute('style');
  for (const [name, colour] of Object.entries(colours)) {
    document.documentElement.style.setProperty(`--vscode-${name}`, colour);
  }
  document.body.className = kind;
  document.body.dataset.vscodeThemeKind = kind;
};
