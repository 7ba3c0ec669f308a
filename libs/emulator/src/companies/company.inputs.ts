import { IsBoolean, IsOptional } from 'class-validator';
import type { Environment } from './company.record.js';
import { IsClientId, IsCompanyId, IsEnvironment, IsSecret, IsWebhookUrl } from './company.rules.js';

/** Names the company a control is about. */
export class CompanyInput {
  /** Default: the company the emulator started with. */
  @IsOptional()
  @IsCompanyId()
  companyId?: string | undefined;
}

/** A company to create. Every field has a default; secrets left out are made up. */
export class NewCompany {
  /** 1 to 64 letters, digits, `_` or `-`. Default: a new one. */
  @IsOptional()
  @IsCompanyId()
  companyId?: string | undefined;

  /** The sandbox client id: 1 to 256 characters, no colon. */
  @IsOptional()
  @IsClientId()
  clientId?: string | undefined;

  /** The sandbox client secret: 1 to 1024 characters, sent as UTF-8. */
  @IsOptional()
  @IsSecret()
  clientSecret?: string | undefined;

  /** The production client id: 1 to 256 characters, no colon. */
  @IsOptional()
  @IsClientId()
  productionClientId?: string | undefined;

  /** The production client secret: 1 to 1024 characters, sent as UTF-8. */
  @IsOptional()
  @IsSecret()
  productionClientSecret?: string | undefined;

  /**
   * HTTPS, or plain HTTP on a loopback host; see `allowPrivateWebhooks` for others. Default: none, and nothing is
   * delivered.
   */
  @IsOptional()
  @IsWebhookUrl()
  webhookUrl?: string | undefined;

  /** 1 to 1024 characters. */
  @IsOptional()
  @IsSecret()
  webhookSecret?: string | undefined;

  /** Default: true. */
  @IsOptional()
  @IsBoolean({ message: 'webhookActive must be true or false' })
  webhookActive?: boolean | undefined;
}

/** A company's webhook, or the part of it to change. */
export class WebhookInput extends CompanyInput {
  /** HTTPS, or plain HTTP on a loopback host; see `allowPrivateWebhooks` for others. Null takes the URL away. */
  @IsOptional()
  @IsWebhookUrl()
  url?: string | null | undefined;

  /** 1 to 1024 characters. The one before it is kept for the `oldSecret` fault. */
  @IsOptional()
  @IsSecret()
  secret?: string | undefined;

  /** False stops deliveries. */
  @IsOptional()
  @IsBoolean({ message: 'active must be true or false' })
  active?: boolean | undefined;
}

/** A rotation of the webhook's secret. */
export class WebhookSecretInput extends CompanyInput {
  /** The new secret, 1 to 1024 characters. Default: made up. */
  @IsOptional()
  @IsSecret()
  secret?: string | undefined;
}

/** A rotation of a client secret. The old one stops working at once. */
export class ClientSecretInput extends WebhookSecretInput {
  /** Default: `sandbox`. */
  @IsOptional()
  @IsEnvironment()
  environment?: Environment | undefined;
}

/** Which tokens to revoke. */
export class RevocationInput extends CompanyInput {
  /** Default: both. */
  @IsOptional()
  @IsEnvironment()
  environment?: Environment | undefined;
}
