/**
 * `%tfguard panel`: the panel of one kernel in a cell's output, in any front end that shows anywidget
 * widgets. Imports nothing from JupyterLab.
 */
import { ShapeError } from '../check';

import type { IWidgetModel } from './host';
import { PanelModel } from './model';
import { readNews, readRows, readState } from './state';
import { PanelView } from './view';
import { trans } from './words';

function render({ model, el }: { model: IWidgetModel; el: HTMLElement }): () => void {
  let panel: PanelModel;
  try {
    panel = new PanelModel(readState(model.get('state')), readRows(model.get('history')));
  } catch (error) {
    el.textContent = unreadable(error);
    return () => el.replaceChildren();
  }
  const id = Math.random().toString(36).slice(2);
  const view = new PanelView(el, panel);

  const onMessage = (content: unknown): void => {
    try {
      panel.take(readNews(content), Date.now());
      view.setTrouble('');
    } catch (error) {
      view.setTrouble(unreadable(error));
    }
    view.draw();
  };
  /** Answered once no cell runs. Messages get lost while a laptop sleeps, so a page that is seen again asks again. */
  const open = (): void => {
    if (document.visibilityState === 'visible') {
      send(model, { type: 'opened', view: id });
    }
  };

  model.on('msg:custom', onMessage);
  document.addEventListener('visibilitychange', open);
  send(model, { type: 'opened', view: id });
  return () => {
    model.off('msg:custom', onMessage);
    document.removeEventListener('visibilitychange', open);
    send(model, { type: 'closed', view: id });
    view.dispose();
  };
}

/** A widget of a saved notebook has no kernel to send to. */
function send(model: IWidgetModel, content: Record<string, unknown>): void {
  try {
    model.send(content);
  } catch {
    // There is no kernel, so nobody waits for it.
  }
}

function unreadable(error: unknown): string {
  if (!(error instanceof ShapeError)) {
    throw error;
  }
  return trans.__('The panel and the kernel are of different versions: %1', error.message);
}

export default { render };
