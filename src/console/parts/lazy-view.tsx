import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";

/** A view whose code is loaded when it is first shown, so that others need not wait for it. */
export function lazyView(title: string, load: () => Promise<ComponentType>): ComponentType {
  const loaded = signal<{ readonly View?: ComponentType; readonly isFailed?: true }>({});
  const begin = async (): Promise<void> => {
    try {
      loaded.value = { View: await load() };
    } catch {
      loaded.value = { isFailed: true };
    }
  };
  return function LazyView() {
    const { View, isFailed } = loaded.value;
    useEffect(() => {
      if (loaded.peek().View === undefined) void begin();
    }, []);
    if (View !== undefined) return <View />;
    return (
      <>
        <h1>{title}</h1>
        <p class="empty" role="status">
          {isFailed === true ? "This view cannot be loaded. Reload the page." : "Loading …"}
        </p>
      </>
    );
  };
}
