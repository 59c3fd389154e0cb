import { createRef } from "preact";
import { useState } from "preact/hooks";

/** Returns a ref to an element of the page that lasts as long as its component. */
export function useElement<T extends Element>() {
  return useState(() => createRef<T>())[0];
}
