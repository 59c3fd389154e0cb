/** Maximum page size of the admin API. */
const pageSizeMax = 1_000;

/** Maximum number of requested pages; further ones are left out. */
const pagesMax = 1_000;

/** A page of results. */
interface Page {
  readonly nextPageToken: string;
}

/** Requests page after page until the last one, or until `take` has enough. */
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
