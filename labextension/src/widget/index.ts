/**
 * `%tfguard panel`: the panel of one kernel in a cell's output, for any front end that supports anywidget. Imports
 * nothing from JupyterLab.
 */
import type { Row } from '../wire';

import { PanelModel } from './model';
import type { News, PanelState } from './model';
import { PanelView } from './view';
import { trans } from './english';

/** The part of anywidget's interface that the panel uses. */
interface IWidgetModel {
  get(name: string): unknown;
  send(content: unknown): void;
  on(event: 'msg:custom', callback: (content: unknown) => void): void;
  off(event: 'msg:custom', callback: (content: unknown) => void): void;
}

function render({ model, el }: { model: IWidgetModel; el: HTMLElement }): () => void {
  let panel: PanelModel;
  let view: PanelView;
  try {
    panel = new PanelModel(model.get('state') as PanelState, model.get('history') as Row[]);
    view = new PanelView(el, panel);
  } catch (error) {
    // A notebook may have been saved by another version.
    console.warn('jupyter-tfguard: could not draw the panel.', error);
    el.textContent = trans.__('The panel and the kernel have different versions.');
    return () => el.replaceChildren();
  }

  const onMessage = (content: unknown): void => {
    panel.take(content as News, Date.now());
    view.draw();
  };
  /** Request the history, which the kernel sends when no cell runs. Repeated when the page is shown: messages may get lost. */
  const open = (): void => {
    if (document.visibilityState === 'visible') {
      send(model, { type: 'opened' });
    }
  };

  model.on('msg:custom', onMessage);
  document.addEventListener('visibilitychange', open);
  send(model, { type: 'opened' });
  return () => {
    model.off('msg:custom', onMessage);
    document.removeEventListener('visibilitychange', open);
    view.dispose();
  };
}

/** A widget of a saved notebook has no kernel to send to. */
function send(model: IWidgetModel, content: Record<string, unknown>): void {
  try {
    model.send(content);
  } catch {
    // There is no kernel, so the message is not needed.
  }
}

export default { render };
