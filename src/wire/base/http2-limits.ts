/**
 * What one HTTP/2 connection may cost us, whoever is at its other end. Proxies that we trust stay
 * far below each of these; a test reaches every one.
 */

/** The most requests a peer may have open; above, one is refused with REFUSED_STREAM. */
export const streamCountMax = 1_000;

/**
 * The most bytes of a header block over all its frames; above, the connection ends. A block is not
 * longer than its list.
 */
export const headerBlockBytesMax = 81_920;

/** The most CONTINUATION frames of one header block; above, the connection ends. */
export const continuationCountMax = 32;

/** What a peer may send on one stream before we have read it, in bytes. */
export const streamWindowBytes = 1_114_112;

/** What a peer may send on all streams before we have read it, in bytes. */
export const connectionWindowBytes = 4_194_304;

/** The most bytes of a stream that wait for the peer; `sendData` answers false from there on. */
export const streamQueueBytesMax = 1_114_112;

/** The most bytes that wait for the peer on all streams; above, the connection ends. */
export const connectionQueueBytesMax = 16_777_216;

/**
 * The most bytes that wait for the socket before bodies wait in their streams, and before we read
 * no more of what the peer asks for.
 */
export const outputBytesMax = 262_144;

/** PING frames a second, besides those that measure how what we have sent arrives. */
export const pingsPerSecondMax = 100;

/**
 * PING frames that a HEADERS or DATA frame of ours may be answered with: clients in Go measure the
 * connection by one each round trip, which is thousands a second between neighbours.
 */
export const pingsPerSentFrameMax = 1;

/** The most PING frames that what we have sent entitles a peer to at a time. */
export const pingsSavedMax = 10_000;

/** SETTINGS frames a second, above which the connection ends with ENHANCE_YOUR_CALM. */
export const settingsPerSecondMax = 100;

/** Frames a second that we need not understand: PRIORITY, GOAWAY and unknown types. */
export const ignoredFramesPerSecondMax = 1_000;

/** DATA frames a second that hold nothing and end nothing. */
export const emptyDataPerSecondMax = 1_000;

/** WINDOW_UPDATE frames a second, besides those that answer what we have sent. */
export const windowUpdatesPerSecondMax = 1_000;

/**
 * WINDOW_UPDATE frames that a HEADERS or DATA frame of ours may be answered with. Clients send two
 * for each, one for the stream and one for the connection.
 */
export const windowUpdatesPerSentFrameMax = 4;

/** The most WINDOW_UPDATE frames that what we have sent entitles a peer to at a time. */
export const windowUpdatesSavedMax = 100_000;

/**
 * Streams a second that a peer makes us reset, by breaking a rule or the bound on open ones; above,
 * the connection ends. Resets by the peer have no such bound: a proxy that gave up on late
 * answers sends them by the thousand, and what they cost is bounded by the streams that still work.
 */
export const provokedResetsPerSecondMax = 10_000;

/** Streams that we reset lately: what the peer sent on them before it knew is ignored. */
export const resetStreamsKeptMax = 1_024;

/** Streams that ended lately: frames on them are told from frames on streams that never were. */
export const endedStreamsKeptMax = 128;

/** How long a peer may take for its preface and its first SETTINGS frame. */
export const greetingMsMax = 10_000;

/** How long a header block may take from its first frame to its last. */
export const headerBlockMsMax = 10_000;

/** Silence after which the peer is asked whether it is still there. */
export const keepaliveTimeMs = 60_000;

/** How long a peer may take to answer a PING. */
export const pingAnswerMsMax = 20_000;

/** How long what we have sent may wait without any of it being taken. */
export const outputStallMsMax = 30_000;

/** How long a connection may have no stream before it is asked to go. */
export const idleMsMax = 3_600_000;

/** How long a connection that we end may take to take its last frames. */
export const flushMsMax = 1_000;
