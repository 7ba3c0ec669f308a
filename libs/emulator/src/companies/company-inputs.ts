import { IsBoolean, IsOptional } from 'class-validator';
import type { Environment } from './company.js';
import {
  IsClientId,
  IsCompanyId,
  IsEnvironment,
  IsSecret,
  IsWebhookUrl,
} from './company-validators.js';

/** Selects the company to which an operation of the emulator applies. */
export class CompanyInput {
  /** Id of the company. Default: the company that the emulator started with. */
  @IsOptional()
  @IsCompanyId()
  companyId?: string | undefined;
}

/** A company to create. Every field has a default. The emulator generates omitted ids and secrets. */
export class NewCompany {
  /** Id of the company: 1 to 64 letters, digits, `_` or `-`. Default: a generated id. */
  @IsOptional()
  @IsCompanyId()
  companyId?: string | undefined;

  /** The sandbox client id: 1 to 256 characters, no colon. Default: a generated id. */
  @IsOptional()
  @IsClientId()
  clientId?: string | undefined;

  /** The sandbox client secret: 1 to 1024 characters, sent as UTF-8. Default: a generated secret. */
  @IsOptional()
  @IsSecret()
  clientSecret?: string | undefined;

  /** The production client id: 1 to 256 characters, no colon. Default: a generated id. */
  @IsOptional()
  @IsClientId()
  productionClientId?: string | undefined;

  /** The production client secret: 1 to 1024 characters, sent as UTF-8. Default: a generated secret. */
  @IsOptional()
  @IsSecret()
  productionClientSecret?: string | undefined;

  /**
   * The webhook URL: HTTPS, or plain HTTP on a loopback host; see also `allowPrivateWebhooks`. Default: none, so that
   * the emulator sends the company no webhook requests.
   */
  @IsOptional()
  @IsWebhookUrl()
  webhookUrl?: string | undefined;

  /** The webhook secret: 1 to 1024 characters. Default: a generated secret. */
  @IsOptional()
  @IsSecret()
  webhookSecret?: string | undefined;

  /** Whether the emulator sends events to the webhook. Default: true. */
  @IsOptional()
  @IsBoolean({ message: 'webhookActive must be true or false' })
  webhookActive?: boolean | undefined;
}

/** A change of a company's webhook. An omitted field does not change the setting. */
export class WebhookInput extends CompanyInput {
  /**
   * The new webhook URL: HTTPS, or plain HTTP on a loopback host; see also `allowPrivateWebhooks`. Null removes the
   * URL.
   */
  @IsOptional()
  @IsWebhookUrl()
  url?: string | null | undefined;

  /** The new webhook secret, 1 to 1024 characters. The emulator keeps the previous secret for the fault `oldSecret`. */
  @IsOptional()
  @IsSecret()
  secret?: string | undefined;

  /** Whether the emulator sends events to the webhook. */
  @IsOptional()
  @IsBoolean({ message: 'active must be true or false' })
  active?: boolean | undefined;
}

/** A rotation of the webhook secret. */
export class WebhookSecretInput extends CompanyInput {
  /** The new secret, 1 to 1024 characters. Default: a generated secret. */
  @IsOptional()
  @IsSecret()
  secret?: string | undefined;
}

/** A rotation of a client secret. The emulator rejects the old secret at once. */
export class ClientSecretInput extends WebhookSecretInput {
  /** The environment of the client secret. Default: `sandbox`. */
  @IsOptional()
  @IsEnvironment()
  environment?: Environment | undefined;
}

/** Selects the tokens to revoke. */
export class RevocationInput extends CompanyInput {
  /** The environment whose tokens are revoked. Default: both environments. */
  @IsOptional()
  @IsEnvironment()
  environment?: Environment | undefined;
}
