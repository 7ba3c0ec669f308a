import { IsIn, Length, Matches, ValidateBy } from 'class-validator';
import { ENVIRONMENTS } from './company.record.js';
import { webhookUrlProblem } from './webhook-url.js';

/** A company's id: 1 to 64 letters, digits, `_` or `-`. */
export function IsCompanyId(): PropertyDecorator {
  return Matches(/^[A-Za-z0-9_-]{1,64}$/, {
    message: 'companyId must be 1 to 64 letters, digits, _ or -',
  });
}

/** A client id: what Basic can carry as a user name. */
export function IsClientId(): PropertyDecorator {
  return Matches(/^[^:\p{Cc}]{1,256}$/u, {
    message: '$property must be 1 to 256 characters without a colon, which ends it in Basic',
  });
}

/** A secret of any kind. */
export function IsSecret(): PropertyDecorator {
  return Length(1, 1024, { message: '$property must be a string of 1 to 1024 characters' });
}

/** `sandbox` or `production`. */
export function IsEnvironment(): PropertyDecorator {
  return IsIn(ENVIRONMENTS, { message: 'environment must be "sandbox" or "production"' });
}

/** A URL that deliveries can be sent to; the emulator's policy decides whether they are. */
export function IsWebhookUrl(): PropertyDecorator {
  return ValidateBy({
    name: 'isWebhookUrl',
    validator: {
      validate: (value) => webhookUrlProblem(value) === undefined,
      defaultMessage: (args) => `${args?.property} ${webhookUrlProblem(args?.value)}`,
    },
  });
}
