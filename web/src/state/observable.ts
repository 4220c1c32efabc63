// A value that views look at. `set` merges; views read a part of it with `useValue` and are drawn again when it changes.
import { useEffect, useReducer, useRef } from 'preact/hooks';

export class Observable<T extends object> {
  private readonly listeners = new Set<() => void>();
  constructor(private value: T) {}

  get(): T {
    return this.value;
  }
  set(changes: Partial<T>): void {
    this.value = { ...this.value, ...changes };
    this.notify();
  }
  notify(): void {
    for (const listener of [...this.listeners]) listener();
  }
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

export function useValue<T extends object, V>(observable: Observable<T>, select: (value: T) => V): V {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const selected = select(observable.get());
  const shown = useRef(selected);
  shown.current = selected;
  const selector = useRef(select);
  selector.current = select;
  useEffect(() => {
    const look = (): void => {
      if (selector.current(observable.get()) !== shown.current) redraw(undefined as never);
    };
    look(); // what changed between drawing and subscribing
    return observable.subscribe(look);
  }, [observable]);
  return selected;
}
