import { Matches, ValidateBy } from 'class-validator';

/** Requires an event type. Any type is valid, including those that the service does not document. */
export function IsEventType(): PropertyDecorator {
  return Matches(/^[\x21-\x7e]{1,128}$/, {
    message: 'eventType must be 1 to 128 visible ASCII characters, because it is sent in a header',
  });
}

/** Requires a phone number; see {@link normalisePhoneNumber}. */
export function IsPhoneNumber(): PropertyDecorator {
  return ValidateBy({
    name: 'isPhoneNumber',
    validator: {
      validate: (value) => normalisePhoneNumber(value) !== undefined,
      defaultMessage: () => 'phoneNumber must be 7 to 15 digits, such as +15550100123',
    },
  });
}

/** Requires a URL that is safe as a link: no `javascript:` URL, and no credentials, which the page would show. */
export function IsReturnUrl(): PropertyDecorator {
  return ValidateBy({
    name: 'isReturnUrl',
    validator: {
      validate: (value) => {
        if (typeof value !== 'string' || value.length > 2048) return false;
        const url = URL.parse(value);
        return /^https?:$/.test(url?.protocol ?? '') && !url?.username && !url?.password;
      },
      defaultMessage: () =>
        'returnUrl must be an absolute http:// or https:// URL of at most 2048 characters, without user name or password',
    },
  });
}

/**
 * Normalises a phone number to an optional `+` and digits: removes spaces, hyphens, dots and brackets. Returns
 * undefined if the number contains other characters, or if it does not have 7 to 15 digits. International numbers have
 * at most 15 digits.
 */
export function normalisePhoneNumber(typed: unknown): string | undefined {
  if (typeof typed !== 'string' || typed.length > 40) return undefined;
  const digits = typed.replace(/[\s().-]/g, '');
  return /^\+?\d{7,15}$/.test(digits) ? digits : undefined;
}
