// The page Troubleshoot of the documentation is generated from the groups, and from the cause and the fix of each code.

/**
 * Every `code` of a `PaymentsError`. The type is a closed union, so the compiler can check that a `switch` covers all
 * codes. A minor release may add codes. The page Troubleshoot of the documentation lists cause and fix of each code.
 */
export type PaymentsErrorCode =
  // Group: Rejected webhook requests
  /**
   * The webhook request has no `X-Webhook-Signature` header. Fix: none if a stranger sent the request. If all webhook
   * requests are rejected, configure the proxy to forward the header.
   */
  | 'signature_missing'
  /**
   * The header `X-Webhook-Signature` is malformed. The header must contain 1 to 10 values. At least one value must be
   * `sha512=` followed by exactly 128 hex digits. Fix: none if a stranger sent the request. If all webhook requests
   * are rejected, find the proxy that changes the header.
   */
  | 'signature_malformed'
  /**
   * No webhook secret of the company gives this signature for the received bytes. Fix: set `webhookSecret` to the
   * secret that the service has for this company and environment. If the secret is right, turn off everything in the
   * proxy that changes bodies.
   */
  | 'signature_mismatch'
  /**
   * No company has this id. Fix: for a webhook request, check that the last segment of the registered address is one
   * of the ids in `companies`. For a call, check the id that is passed to `forCompany()`. A directory must return a
   * company with exactly the id that was passed to `find()`.
   */
  | 'company_unknown'
  /**
   * The signature is valid, but the body is not an event. Fix: the message names the field; ask the operator of the
   * service why the service sends this body.
   */
  | 'payload_invalid'
  /**
   * The body has more than `webhook.bodyLimitBytes` bytes. Or the body arrives in more than 4,096 chunks, and most of
   * these chunks are smaller than 64 bytes. Fix: raise the limit if the service really sends larger bodies. If the
   * body has too many chunks, configure the proxy to buffer requests.
   */
  | 'payload_too_large'
  /**
   * The content type of the webhook request is not `application/json`. Fix: configure the proxy to forward the header
   * `Content-Type`.
   */
  | 'content_type_unsupported'
  /**
   * The webhook request has a `Content-Encoding`, but the signature covers the bytes as the service sent them. Fix:
   * turn off the compression of requests in the proxy.
   */
  | 'content_encoding_unsupported'
  /**
   * The application's own check `webhook.before` rejected the webhook request, threw, or took longer than
   * `webhook.bodyTimeoutMs`. Fix: none if the check works as intended. If the status is 503, the log contains the
   * error of the check.
   */
  | 'request_rejected'
  /**
   * The webhook requests whose signature is not verified yet reached the limit `webhook.maxPending` or
   * `webhook.maxPendingBytes`. Fix: accept only requests from the addresses of the service, or, if the requests are
   * genuine, raise the limits. The service does not promise to send these events again.
   */
  | 'webhook_busy'
  /**
   * The body of the webhook request did not arrive within `webhook.bodyTimeoutMs`. Fix: let the proxy buffer requests,
   * so that it forwards a body only when the body is complete.
   */
  | 'body_timeout'
  /**
   * Other code read the body of the webhook request before the module could, so the signature cannot be checked. Fix:
   * if main.ts adds a body parser before Nest creates the application, add the parser later or exclude the webhook
   * route from it. On Fastify, middleware of `app.use()` and of modules runs before this module: exclude the webhook
   * route from it, or keep the bytes as `request.rawBody`. If `WebhookGuard` is a global guard, apply it to the route
   * with `@UseGuards` instead.
   */
  | 'raw_body_unavailable'
  // Group: Receiving and handling events
  /**
   * The company directory threw or did not respond within `deadlineMs`. Or there were too many requests for company
   * ids for which no request with a valid signature has arrived yet. In this case, the module does not call the
   * directory. Fix: repair the directory, whose error is in the log. The service may send the event again. If strangers
   * invent company ids, reject the requests of the strangers in `webhook.before`, or raise
   * `webhook.maxLookupsPerSecond`.
   */
  | 'directory_unavailable'
  /**
   * The database of the inbox failed or did not respond, or the application is starting or closing. Fix: the message or
   * the log names the error of the database; repair the database. After the repair, the application continues without a
   * restart. The service does not promise to send the event again.
   */
  | 'inbox_unavailable'
  /**
   * The memory inbox is full of events whose handlers have not finished, or too many events wait for the database of a
   * durable inbox. Fix: find out what delays the handlers or the database. Replace the memory inbox by a durable inbox,
   * or raise `maxEvents` and `maxBytes` of `memoryInbox()`.
   */
  | 'inbox_full'
  /**
   * The event was not stored within `deadlineMs` after it arrived. With the memory inbox: the event was not handled
   * within this time. Fix: use a durable inbox if handlers are slow, or check the load of the database. With a durable
   * inbox, the event is often stored although the response was 503.
   */
  | 'deadline_passed'
  /**
   * Memory inbox only: a handler of the event failed. Fix: the log contains the error of the handler; correct the
   * handler. The module retries the failed handlers by their schedule. If a copy of the event arrives, the module
   * retries the failed handlers at once.
   */
  | 'handlers_failed'
  /**
   * An attempt of a handler took longer than its `timeoutMs`. Fix: pass `context.signal` to every call that takes
   * long. Make the handler faster, or raise `timeoutMs` of `@OnPaymentEvent` or `worker.timeoutMs`.
   */
  | 'handler_timeout'
  /**
   * `data` of the event breaks a rule of the handler's data class or does not match its schema, so the delivery became a
   * dead letter. Fix: the message names the field and the rule, or the path. Correct the class or the schema, deploy it,
   * and redrive the event.
   */
  | 'data_invalid'
  /**
   * The option `bodyCodec` could not decode the stored body of an event. Fix: add the missing key to the codec. The
   * worker retries the delivery; redrive it if it is dead.
   */
  | 'body_undecodable'
  /**
   * A handler threw `UnrecoverableError`, or no attempt is left after a crash or after the retry schedule was
   * shortened. Fix: read `lastError` of the delivery, remove the cause, and redrive the delivery.
   */
  | 'unrecoverable'
  /**
   * Another process took over the delivery before `context.commit` finished, so nothing was committed. Or
   * `PaymentExpectations.request()` could not begin its request within 30 s, so nothing was sent. Fix: in the case of
   * `request()`, call it again. In the case of a commit, no fix is necessary, because the other process handles the
   * delivery. If the error is frequent, find the code that blocks the event loop, or raise `worker.leaseMs`.
   */
  | 'lease_lost'
  /**
   * `context.commit` was called, but the inbox or the test context has no transaction. Fix: use `sqliteInbox()` or
   * `postgresInbox()` with the database of your own tables. In a unit test, pass `commit` to `handlerContext()`.
   */
  | 'commit_unsupported'
  /**
   * `context.commit` was called a second time, or after the handler had returned. Fix: do all work in one commit, and
   * await it in the handler.
   */
  | 'commit_rejected'
  // Group: Access tokens
  /**
   * The service rejected the client id and the client secret. Fix: set `clientId` and `clientSecret` to the values for
   * this `baseUrl`; sandbox and production have different values. The message says when the next token request is
   * possible.
   */
  | 'invalid_credentials'
  /**
   * The token endpoint did not respond, responded with an error, or returned no usable token. Fix: check `baseUrl`,
   * which must not end in `/v1`, and the network. The message names the status, and says when the next token request is
   * possible.
   */
  | 'token_unavailable'
  // Group: Calls to the payments service
  /**
   * The service responded with 401, also to a new token. Fix: check that `baseUrl` and the credentials belong
   * together: a sandbox token is valid only in the sandbox. If the service expects the token in another header, set
   * `api.tokenHeader`.
   */
  | 'authentication_failed'
  /** The service responded with 403. Fix: ask the operator of the service to permit this call to the company. */
  | 'permission_denied'
  /**
   * The service responded with 404. Fix: check the id and the path; a transaction of the sandbox does not exist in
   * production.
   */
  | 'not_found'
  /**
   * The service responded with 409, because the call contradicts the current state. Fix: read the current state with a
   * GET, and decide whether to repeat the call.
   */
  | 'conflict'
  /** The service responded with 400 or 422. Fix: read `body` of the error, and correct the request. */
  | 'validation_failed'
  /**
   * The service responded with 429. If the call is a GET, the module has already retried it. Fix: wait `retryAfterMs`
   * of the error, and call less often.
   */
  | 'rate_limited'
  /**
   * The service responded with 5xx. If the call is a GET, the module has already retried it. Fix: repeat a GET later.
   * Before you repeat another method, check with `GET /v1/transactions/{id}` whether the call had an effect.
   */
  | 'server_error'
  /**
   * The service responded with a status that the module does not expect. Fix: read `status` and `body` of the error,
   * and check the path and method of the call.
   */
  | 'unexpected_status'
  /**
   * The service responded with a redirect. The module does not follow redirects, because it would send the token to
   * the other address. Fix: set `baseUrl` to the final address.
   */
  | 'redirect_not_followed'
  /**
   * The connection failed, and the call had no effect. Fix: check `baseUrl`, DNS, proxy and TLS certificate; the
   * message names the system's error. It is safe to repeat the call.
   */
  | 'connection_failed'
  /**
   * There was no response within `api.attemptTimeoutMs` or `api.deadlineMs`, and the call had no effect. Fix: repeat
   * the call later; raise the limit if the service is always slow.
   */
  | 'timeout'
  /**
   * The caller's signal or the shutdown of the application ended the call, and the call had no effect. Fix: none;
   * repeat the call if its result is still needed.
   */
  | 'aborted'
  /**
   * The module sent a call that changes something, or a COMMIT of the inbox, and got no response. Fix: check with `GET
   * /v1/transactions/{id}` whether the call had an effect before you repeat the call. The inbox itself finds out the
   * outcome of a COMMIT.
   */
  | 'outcome_unknown'
  /** The response has more than `api.maxResponseBytes` bytes. Fix: request less data per call, or raise the limit. */
  | 'response_too_large'
  /**
   * The body of a successful response is not a JSON object, or cannot be decompressed. Fix: check that `baseUrl` is
   * the service and not a page of a proxy. The service accepted the call, so check its effect before you repeat it.
   */
  | 'response_invalid'
  // Group: Configuration of the application
  /**
   * An option or an environment variable is missing or wrong, so the application does not start. Fix: the message
   * names the option, its unit and its bounds; the page Settings of the documentation lists all options.
   */
  | 'options_invalid'
  /**
   * The engine that `relay` or `source` uses has a setting that loses events, so the application does not start. Fix:
   * the message names the setting and its value. Change the setting in the engine, or let the adapter create the stream
   * or the queue. With the option `setup: 'warn'` of the adapter, the application logs the setting and starts.
   */
  | 'engine_unsafe'
  /**
   * The declaration of a handler has an error, so the handler or one of its guards would never run. Or two handlers
   * have the same name. Or a delivery belongs to a handler that this process has not registered. Fix: the message
   * names the handler and the fix.
   */
  | 'handlers_invalid';
