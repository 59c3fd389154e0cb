import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX, TargetedMouseEvent } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { formatCount } from "../data/format.js";
import { useElement } from "../state/element.js";
import { goTo, paramOf, setParams } from "../state/location.js";
import { saveCsv } from "./save-csv.js";

/** A column of a table. */
export interface TableColumn<R> {
  readonly id: string;
  readonly title: string;
  readonly align?: "right";
  /** What it is sorted, filtered and saved by. */
  readonly value: (row: R) => string | number;
  readonly render?: (row: R) => ComponentChildren;
  /** Left out where the window is narrow. */
  readonly isWideOnly?: boolean;
}

/** A column of text. */
export function textColumn<R>(
  title: string,
  value: (row: R) => string | number,
  look: Pick<TableColumn<R>, "render" | "isWideOnly"> = {},
): TableColumn<R> {
  return { id: title.toLowerCase(), title, value, ...look };
}

/** A column of numbers: right-aligned, and sorted from the largest. */
export function numberColumn<R>(
  title: string,
  value: (row: R) => number | bigint,
  look: Pick<TableColumn<R>, "render" | "isWideOnly"> = {},
): TableColumn<R> {
  return {
    id: title.toLowerCase(),
    title,
    align: "right",
    value: (row) => Number(value(row)),
    render: (row) => formatCount(value(row)),
    ...look,
  };
}

/** A table and what it is of. */
export interface TableProps<R> {
  readonly label: string;
  readonly columns: readonly TableColumn<R>[];
  readonly rows: readonly R[];
  readonly rowId: (row: R) => string;
  /** What to say where there are no rows. */
  readonly empty: ComponentChildren;
  /** Where a row leads. */
  readonly href?: (row: R) => string;
  /** Its parameters in the URL begin so. */
  readonly name?: string;
  /** Without a filter and without a button for CSV. */
  readonly isPlain?: boolean;
  /** Tells which rows can be seen. */
  readonly onVisible?: (rows: readonly R[]) => void;
}

/** All rows of a small table stand in the page; of a larger one those that can be seen. */
const wholeRowsMax = 100;
const rowPixels = 34;
const windowRows = 40;

/** A table that can be sorted, filtered, walked by keys and saved. */
export function DataTable<R>(props: TableProps<R>) {
  const { label, columns, rows, empty, name = "", isPlain = false } = props;
  const query = isPlain ? "" : paramOf(`${name}q`);
  const sort = isPlain ? "" : paramOf(`${name}sort`);
  const shown = useMemo(
    () => sortRows(filterRows(rows, columns, query), columns, sort),
    [rows, query, sort],
  );
  return (
    <div class="table">
      {isPlain || rows.length === 0 ? undefined : (
        <div class="table-tools">
          <input
            type="search"
            placeholder="Filter"
            aria-label={`Filter ${label}`}
            value={query}
            onInput={(event) => setParams({ [`${name}q`]: event.currentTarget.value })}
          />
          <span class="muted" role="status">
            {query === ""
              ? formatCount(rows.length)
              : `${formatCount(shown.length)} of ${formatCount(rows.length)}`}
          </span>
          <button
            type="button"
            onClick={() =>
              saveCsv(label, [
                columns.map(({ title }) => title),
                ...shown.map((row) => columns.map(({ value }) => value(row))),
              ])
            }
          >
            CSV
          </button>
        </div>
      )}
      {shown.length === 0 ? (
        <div class="empty">{rows.length === 0 ? empty : "Nothing matches the filter."}</div>
      ) : (
        <Body {...props} shown={shown} sort={sort} />
      )}
    </div>
  );
}

interface BodyProps<R> extends TableProps<R> {
  readonly shown: readonly R[];
  readonly sort: string;
}

function Body<R>(props: BodyProps<R>) {
  const { label, columns, shown, rowId, href, name = "", sort, isPlain = false, onVisible } = props;
  const box = useElement<HTMLDivElement>();
  const top = useSignal(0);
  const isWhole = shown.length <= wholeRowsMax;
  const first = isWhole ? 0 : Math.max(0, Math.floor(top.value / rowPixels) - 8);
  const seen = isWhole ? shown : shown.slice(first, first + windowRows);
  const seenIds = seen.map(rowId).join("\n");
  useEffect(() => onVisible?.(seen), [seenIds]);
  const spacer = (count: number): JSX.Element | undefined =>
    count <= 0 ? undefined : (
      <tr style={{ height: `${count * rowPixels}px` }}>
        <td colSpan={columns.length} />
      </tr>
    );
  return (
    <div
      class={`rows ${isWhole ? "" : "virtual"}`}
      ref={box}
      role="region"
      aria-label={label}
      // A region that scrolls must be reached by keys.
      tabIndex={0}
      onScroll={(event) => (top.value = event.currentTarget.scrollTop)}
      onKeyDown={(event) => walk(event, box.current ?? undefined)}
    >
      <table aria-rowcount={shown.length + 1}>
        <thead>
          <tr>
            {columns.map((column) => (
              <HeadCell key={column.id} column={column} sort={sort} name={name} isPlain={isPlain} />
            ))}
          </tr>
        </thead>
        <tbody>
          {spacer(first)}
          {seen.map((row, i) => (
            <tr
              key={rowId(row)}
              aria-rowindex={first + i + 2}
              class={href === undefined ? "" : "linked"}
              onClick={(event) => follow(event, href?.(row))}
            >
              {columns.map((column, k) => (
                <td key={column.id} class={cellClass(column)}>
                  {k === 0 && href !== undefined ? (
                    <a href={href(row)}>{contentOf(column, row)}</a>
                  ) : (
                    contentOf(column, row)
                  )}
                </td>
              ))}
            </tr>
          ))}
          {spacer(shown.length - first - seen.length)}
        </tbody>
      </table>
    </div>
  );
}

function HeadCell<R>({
  column,
  sort,
  name,
  isPlain,
}: {
  readonly column: TableColumn<R>;
  readonly sort: string;
  readonly name: string;
  readonly isPlain: boolean;
}) {
  const { id, title } = column;
  const direction = sort === id ? "ascending" : sort === `-${id}` ? "descending" : "none";
  if (isPlain || title === "") {
    return (
      <th scope="col" class={cellClass(column)}>
        {title}
      </th>
    );
  }
  // Numbers begin with the largest.
  const steps = column.align === "right" ? [`-${id}`, id, ""] : [id, `-${id}`, ""];
  const next = steps[(steps.indexOf(sort) + 1) % steps.length] ?? "";
  return (
    <th scope="col" class={cellClass(column)} aria-sort={direction}>
      <button type="button" onClick={() => setParams({ [`${name}sort`]: next })}>
        {title}
        <span class="sort-mark" aria-hidden="true">
          {direction === "ascending" ? "▲" : direction === "descending" ? "▼" : ""}
        </span>
      </button>
    </th>
  );
}

function cellClass<R>({ align, isWideOnly }: TableColumn<R>): string {
  return `${align === "right" ? "number" : ""} ${isWideOnly === true ? "wide-only" : ""}`.trim();
}

function contentOf<R>({ render, value }: TableColumn<R>, row: R): ComponentChildren {
  return render === undefined ? value(row) : render(row);
}

/** A click anywhere in a row follows its link, but for one on something of its own. */
function follow(event: TargetedMouseEvent<HTMLElement>, href: string | undefined): void {
  const { target } = event;
  if (href === undefined || !(target instanceof Element)) return;
  if (target.closest("a, button") || getSelection()?.isCollapsed === false) return;
  goTo(href);
}

/** Arrow keys go from row to row, Enter follows as everywhere. */
function walk(event: KeyboardEvent, box: HTMLElement | undefined): void {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (step === 0 || box === undefined) return;
  const links = [...box.querySelectorAll<HTMLElement>("tbody tr a:first-child")];
  if (links.length === 0) return;
  event.preventDefault();
  const at = links.findIndex((link) => link.matches(":focus"));
  const next = links[Math.max(0, Math.min(links.length - 1, at + step))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function filterRows<R>(
  rows: readonly R[],
  columns: readonly TableColumn<R>[],
  query: string,
): readonly R[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rows;
  return rows.filter((row) => {
    const text = columns
      .map(({ value }) => value(row))
      .join("\n")
      .toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

function sortRows<R>(
  rows: readonly R[],
  columns: readonly TableColumn<R>[],
  sort: string,
): readonly R[] {
  const isDown = sort.startsWith("-");
  const column = columns.find(({ id }) => id === (isDown ? sort.slice(1) : sort));
  if (column === undefined) return rows;
  const keyed = rows.map((row) => ({ row, key: column.value(row) }));
  const sign = isDown ? -1 : 1;
  return keyed
    .sort(({ key: a }, { key: b }) => {
      const order =
        typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : 1;
      return a === b ? 0 : sign * order;
    })
    .map(({ row }) => row);
}
