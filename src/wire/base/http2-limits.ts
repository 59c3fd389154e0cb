/**
 * Limits of what one HTTP/2 connection may cost, whoever the peer is. Trusted proxies stay far
 * below each of them; a test reaches every one.
 */

/** Maximum open requests of a peer. Further ones are refused with REFUSED_STREAM. */
export const streamCountMax = 1_000;

/**
 * Maximum bytes of a header block over all its frames. Above, the connection ends. A block is not
 * longer than its list.
 */
export const headerBlockBytesMax = 81_920;

/** Maximum CONTINUATION frames of one header block. Above, the connection ends. */
export const continuationCountMax = 32;

/** Maximum bytes that a peer may send on one stream before they are read. */
export const streamWindowBytes = 1_114_112;

/** Maximum bytes that a peer may send on all streams before they are read. */
export const connectionWindowBytes = 4_194_304;

/** Maximum bytes of a stream that wait for the peer. From there on, `sendData` returns false. */
export const streamQueueBytesMax = 1_114_112;

/** Maximum bytes that wait for the peer on all streams. Above, the connection ends. */
export const connectionQueueBytesMax = 16_777_216;

/**
 * Maximum bytes that wait for the socket. Above, bodies wait in their streams, and no more of the
 * peer's requests are read.
 */
export const outputBytesMax = 262_144;

/** Maximum PING frames per second, besides those that measure the arrival of sent frames. */
export const pingsPerSecondMax = 100;

/**
 * PING frames that a peer may send for each HEADERS or DATA frame from this side: clients in Go
 * measure the connection with one per round trip, which is thousands per second between neighbours.
 */
export const pingsPerSentFrameMax = 1;

/** Maximum PING frames that sent frames entitle a peer to at a time. */
export const pingsSavedMax = 10_000;

/** Maximum SETTINGS frames per second. Above, the connection ends with ENHANCE_YOUR_CALM. */
export const settingsPerSecondMax = 100;

/** Maximum frames per second that can be ignored: PRIORITY, GOAWAY and unknown types. */
export const ignoredFramesPerSecondMax = 1_000;

/** Maximum DATA frames per second that are empty and end nothing. */
export const emptyDataPerSecondMax = 1_000;

/** Maximum WINDOW_UPDATE frames per second, besides those that answer sent frames. */
export const windowUpdatesPerSecondMax = 1_000;

/**
 * WINDOW_UPDATE frames that a peer may send for each HEADERS or DATA frame from this side. Clients
 * send two for each, one for the stream and one for the connection.
 */
export const windowUpdatesPerSentFrameMax = 4;

/** Maximum WINDOW_UPDATE frames that sent frames entitle a peer to at a time. */
export const windowUpdatesSavedMax = 100_000;

/**
 * Maximum streams per second that a peer causes to be reset, by breaking a rule or the limit of
 * open ones. Above, the connection ends. Resets by the peer have no such limit: a proxy that gave
 * up on late answers sends thousands, and the streams that still work limit their cost.
 */
export const provokedResetsPerSecondMax = 10_000;

/** Recently reset streams that are kept: frames that the peer sent before it knew are ignored. */
export const resetStreamsKeptMax = 1_024;

/** Recently ended streams that are kept, to tell them from streams that never existed. */
export const endedStreamsKeptMax = 128;

/** Timeout of a peer's preface and first SETTINGS frame, in milliseconds. */
export const greetingMsMax = 10_000;

/** Maximum time that a frame or a header block may stay incomplete, in milliseconds. */
export const headerBlockMsMax = 10_000;

/** Silence after which a PING checks whether the peer is still there, in milliseconds. */
export const keepaliveTimeMs = 60_000;

/** Timeout of a PING, in milliseconds. */
export const pingAnswerMsMax = 20_000;

/** Maximum time that sent bytes may wait without any of them being taken, in milliseconds. */
export const outputStallMsMax = 30_000;

/** Maximum time without a stream before a connection is asked to close, in milliseconds. */
export const idleMsMax = 3_600_000;

/** Maximum time that a connection takes to flush its last frames, in milliseconds. */
export const flushMsMax = 1_000;
