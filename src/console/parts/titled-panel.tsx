import type { ComponentChildren } from "preact";

/** A part of a page with a title, and with what stands beside it. */
export function TitledPanel({
  title,
  aside,
  children,
}: {
  readonly title: string;
  readonly aside?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  return (
    <section class="panel">
      <header>
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}
