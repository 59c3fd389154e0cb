/** The largest page that the admin API gives. */
const pageSizeMax = 1_000;

/** The most pages that are asked for; what is beyond is left out. */
const pagesMax = 1_000;

/** Something that comes in pages. */
interface Page {
  readonly nextPageToken: string;
}

/** Asks for page after page until there is none, or until `take` has enough. */
export async function eachPage<P extends Page>(
  ask: (page: { readonly pageSize: number; readonly pageToken: string }) => Promise<P>,
  take: (page: P) => "enough" | undefined,
): Promise<void> {
  let pageToken = "";
  for (let count = 0; count < pagesMax; count += 1) {
    const page = await ask({ pageSize: pageSizeMax, pageToken });
    pageToken = page.nextPageToken;
    if (take(page) === "enough" || pageToken === "") return;
  }
}
