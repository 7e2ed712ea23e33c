/** Renders into the page as React does in JupyterLab. */
import { act } from 'react';
import type * as React from 'react';
import { createRoot } from 'react-dom/client';

(globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;

export interface IRendered {
  readonly node: HTMLElement;
  readonly text: string;
  click(selector: string): Promise<void>;
}

export function render(element: React.JSX.Element): IRendered {
  const node = document.createElement('div');
  document.body.replaceChildren(node);
  const root = createRoot(node);
  act(() => root.render(element));
  return {
    node,
    get text() {
      return node.textContent ?? '';
    },
    click: selector =>
      act(async () => {
        node.querySelector<HTMLElement>(selector)?.click();
      })
  };
}
