import { signal } from "@preact/signals";
import type { FunctionComponent } from "preact";
import { useEffect } from "preact/hooks";

/**
 * A view, or a part of one, whose code is loaded when it is first shown, so that others need not
 * wait for it.
 *
 * @param title of the view that is loaded
 */
export function lazyView<Props extends object>(
  load: () => Promise<FunctionComponent<Props>>,
  title?: string,
): FunctionComponent<Props> {
  const loaded = signal<{ readonly View?: FunctionComponent<Props>; readonly isFailed?: true }>({});
  const begin = async (): Promise<void> => {
    try {
      loaded.value = { View: await load() };
    } catch {
      loaded.value = { isFailed: true };
    }
  };
  return function LazyView(props: Props) {
    const { View, isFailed } = loaded.value;
    useEffect(() => {
      if (loaded.peek().View === undefined) void begin();
    }, []);
    if (View !== undefined) return <View {...props} />;
    return (
      <>
        {title === undefined ? undefined : <h1>{title}</h1>}
        <p class="empty" role="status">
          {isFailed === true ? "This view cannot be loaded. Reload the page." : "Loading …"}
        </p>
      </>
    );
  };
}
