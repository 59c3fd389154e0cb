import { createRef } from "preact";
import { useState } from "preact/hooks";

/** A place for an element of the page, as long as its component is shown. */
export function useElement<T extends Element>() {
  return useState(() => createRef<T>())[0];
}
