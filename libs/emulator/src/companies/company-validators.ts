import { IsIn, Length, Matches, ValidateBy } from 'class-validator';
import { ENVIRONMENTS } from './company.js';
import { webhookUrlProblem } from './webhook-url.js';

export function IsCompanyId(): PropertyDecorator {
  return Matches(/^[A-Za-z0-9_-]{1,64}$/, {
    message: 'companyId must be 1 to 64 letters, digits, _ or -',
  });
}

export function IsClientId(): PropertyDecorator {
  return Matches(/^[^:\p{Cc}]{1,256}$/u, {
    message:
      '$property must be 1 to 256 characters without a colon (HTTP Basic ends the user name at the first colon) and without control characters',
  });
}

export function IsSecret(): PropertyDecorator {
  return Length(1, 1024, { message: '$property must be a string of 1 to 1024 characters' });
}

export function IsEnvironment(): PropertyDecorator {
  return IsIn(ENVIRONMENTS, { message: 'environment must be "sandbox" or "production"' });
}

/** Requires a webhook URL of a valid form. The {@link WebhookPolicy} is checked separately. */
export function IsWebhookUrl(): PropertyDecorator {
  return ValidateBy({
    name: 'isWebhookUrl',
    validator: {
      validate: (value) => webhookUrlProblem(value) === undefined,
      defaultMessage: (args) => `${args?.property} ${webhookUrlProblem(args?.value)}`,
    },
  });
}
