import { PaymentsError } from '../../errors/payments-error.js';

/** Facts about a token that could not be fetched. */
export interface TokenErrorFacts {
  /** Id of the company whose token it is. */
  company: string;
  /** Status of the token endpoint's answer, if there was one. */
  status?: number | undefined;
  /** How long no further token request is made, in milliseconds. */
  retryAfterMs: number;
}

/**
 * There is no access token, so the call was not sent. `invalid_credentials`: the service rejected the client id and
 * secret. `token_unavailable`: the token endpoint is down, too slow, or gave an unusable answer.
 */
export class PaymentsTokenError extends PaymentsError implements TokenErrorFacts {
  override readonly name = 'PaymentsTokenError';
  readonly company: string;
  readonly status: number | undefined;
  readonly retryAfterMs: number;

  constructor(
    code: 'invalid_credentials' | 'token_unavailable',
    message: string,
    facts: TokenErrorFacts,
  ) {
    super(code, message);
    this.company = facts.company;
    this.status = facts.status;
    this.retryAfterMs = facts.retryAfterMs;
  }
}
