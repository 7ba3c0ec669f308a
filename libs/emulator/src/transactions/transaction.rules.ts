import { Matches, ValidateBy } from 'class-validator';
import { normalisePhoneNumber } from './phone.number.js';

/** The type of an event: any type, not only those that the service documents. */
export function IsEventType(): PropertyDecorator {
  return Matches(/^[\x21-\x7e]{1,128}$/, {
    message: 'eventType must be 1 to 128 visible ASCII characters: it is sent in a header',
  });
}

/** A phone number as people type it. */
export function IsPhoneNumber(): PropertyDecorator {
  return ValidateBy({
    name: 'isPhoneNumber',
    validator: {
      validate: (value) => normalisePhoneNumber(value) !== undefined,
      defaultMessage: () => 'phoneNumber must be 7 to 15 digits, such as +15550100123',
    },
  });
}

/** An address a page may link to: no `javascript:`, and no credentials to be shown with it. */
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
        'returnUrl must be a whole http:// or https:// URL of at most 2048 characters, without user name or password',
    },
  });
}
