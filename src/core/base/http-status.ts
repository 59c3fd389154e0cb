/**
 * The HTTP statuses that Headgate returns or evaluates. Their numbers are defined only here.
 *
 * Source: IANA, HTTP Status Code Registry.
 */
export const httpStatuses = {
  ok: 200,
  seeOther: 303,
  notModified: 304,
  badRequest: 400,
  unauthorized: 401,
  forbidden: 403,
  notFound: 404,
  methodNotAllowed: 405,
  requestTimeout: 408,
  conflict: 409,
  contentTooLarge: 413,
  unsupportedMediaType: 415,
  tooEarly: 425,
  tooManyRequests: 429,
  requestHeaderFieldsTooLarge: 431,
  internalServerError: 500,
  notImplemented: 501,
  badGateway: 502,
  serviceUnavailable: 503,
  gatewayTimeout: 504,
} as const;
