/**
 * `%tfguard panel`: the panel of one kernel in a cell's output, in any front end that shows anywidget
 * widgets. Imports nothing from JupyterLab.
 */
import { ShapeError } from '../check';

import type { IWidgetModel } from './host';
import { PanelModel } from './model';
import { Presence } from './presence';
import { readNews, readRows, readState } from './state';
import type { News } from './state';
import { PanelView } from './view';
import { waysToAsk } from './ways';
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
  let isClosed = false;

  const take = (news: News): void => {
    panel.take(news, Date.now());
    if (news.type === 'answer' && !news.answer.isDone) {
      view.setAsking(false, news.answer.reason);
    } else if (news.type === 'answer' || news.type === 'rate') {
      view.setAsking(false, '');
    }
    view.draw();
  };
  const onMessage = (content: unknown): void => {
    try {
      const news = readNews(content);
      take(news);
      if (news.type === 'state' && news.state.busy) {
        presence.fed();
      }
    } catch (error) {
      view.setAsking(false, unreadable(error));
    }
  };
  const ask = waysToAsk(
    () => panel.state.kernel_id,
    () => model.widget_manager?.kernel
  );
  const togglePause = async (): Promise<void> => {
    const request = { request: 'rate', hertz: panel.isPaused ? panel.hertz : 0 } as const;
    view.setAsking(true, '');
    const answer = await ask(request);
    if (isClosed) {
      return;
    }
    if (answer !== null) {
      take({ type: 'answer', answer });
    } else {
      view.setAsking(true, trans.__('The kernel answers once no cell runs.'));
      send(model, { type: 'control', ...request });
    }
  };

  /** Also answered with the news: messages get lost while a laptop sleeps, and then the kernel may long be idle. */
  const sayHere = async (): Promise<boolean> => {
    const answer = await ask({ request: 'here', panel: String(model.get('panel')), view: id });
    if (answer?.isDone === true && !isClosed) {
      panel.take({ type: 'answer', answer }, Date.now());
      view.draw();
    }
    return answer !== null;
  };

  const presence = new Presence(sayHere);
  const view = new PanelView(el, panel, {
    onPause: () => void togglePause(),
    onSilent: presence.tell
  });

  model.on('msg:custom', onMessage);
  send(model, { type: 'opened', view: id });
  return () => {
    isClosed = true;
    presence.dispose();
    model.off('msg:custom', onMessage);
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
