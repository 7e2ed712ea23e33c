import { Signal } from '@lumino/signaling';
import { beforeEach, describe, expect, it } from 'vitest';

import { CurrentSession } from '../session';

/** A widget of the shell; with a path, one that carries a session. */
class FakeWidget {
  readonly disposed = new Signal<this, void>(this);
  readonly sessionContext:
    | {
        path: string;
        session: { kernel: { id: string } | null };
        kernelChanged: Signal<object, void>;
        propertyChanged: Signal<object, void>;
      }
    | undefined;

  constructor(path?: string) {
    this.sessionContext =
      path === undefined
        ? undefined
        : {
            path,
            session: { kernel: { id: `kernel of ${path}` } },
            kernelChanged: new Signal<object, void>({}),
            propertyChanged: new Signal<object, void>({})
          };
  }
}

describe('CurrentSession', () => {
  let open: FakeWidget[];
  let current: FakeWidget | null;
  let currentChanged: Signal<object, void>;
  let session: CurrentSession;

  beforeEach(() => {
    open = [new FakeWidget('a.ipynb'), new FakeWidget('b.ipynb'), new FakeWidget()];
    current = null;
    currentChanged = new Signal<object, void>({});
    session = new CurrentSession({
      currentChanged,
      get currentWidget() {
        return current;
      },
      widgets: () => open
    } as never);
  });

  function goTo(index: number): void {
    current = open[index] ?? null;
    currentChanged.emit();
  }

  it('begins with a notebook that is open', () => {
    expect(session.target).toEqual({ path: 'a.ipynb', kernelId: 'kernel of a.ipynb' });
  });

  it('follows to another notebook, and stays there beside a text file', () => {
    goTo(1);
    expect(session.target?.path).toBe('b.ipynb');
    goTo(2);
    expect(session.target?.path).toBe('b.ipynb');
  });

  it('emits a new kernel and a new name', () => {
    const seen: unknown[] = [];
    session.changed.connect((_, target) => seen.push(target));
    const context = open[0].sessionContext!;
    context.session.kernel = null;
    context.kernelChanged.emit();
    context.path = 'renamed.ipynb';
    context.propertyChanged.emit();
    expect(seen).toEqual([
      { path: 'a.ipynb', kernelId: null },
      { path: 'renamed.ipynb', kernelId: null }
    ]);
  });

  it('switches to another open notebook when its own is closed, else to none', () => {
    const [a, b] = open as [FakeWidget, FakeWidget];
    a.disposed.emit();
    expect(session.target?.path).toBe('b.ipynb');
    open = [];
    b.disposed.emit();
    expect(session.target).toBeNull();
  });
});
