import { Controller, Get, Inject } from '@nestjs/common';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { PaymentsHealthIndicator } from 'nestjs-payments/health';
import type { PaymentsReadinessOptions } from 'nestjs-payments/health';
import { none, OnPaymentEvent } from 'nestjs-payments';
import type { InboxDefinition, PaymentsModuleOptions } from 'nestjs-payments';
import { WebhookApplication } from '../webhook/webhook-application.js';

/** The response of a health endpoint. */
export interface Health {
  /** Status of the HTTP response. */
  readonly status: number;
  /** The text of the body. */
  readonly text: string;
  /** The part of the body about the module. */
  readonly payments: Readonly<Record<string, unknown>>;
}

/** Starts an application with the endpoints `/health/live` and `/health/ready`. Its handler `book` rejects every event. */
export function startWithHealth(
  inbox: InboxDefinition,
  readiness: PaymentsReadinessOptions = {},
  payments: Partial<PaymentsModuleOptions> = {},
): Promise<WebhookApplication> {
  @Controller('health')
  class HealthController {
    constructor(
      @Inject(HealthCheckService) private readonly health: HealthCheckService,
      private readonly payments: PaymentsHealthIndicator,
    ) {}

    @Get('live')
    @HealthCheck()
    live() {
      return this.health.check([() => this.payments.liveness()]);
    }

    @Get('ready')
    @HealthCheck()
    ready() {
      return this.health.check([() => this.payments.readiness('payments', readiness)]);
    }
  }
  class Books {
    @OnPaymentEvent('*', { name: 'book' })
    book(): void {
      throw new Error('the ledger is down');
    }
  }
  return WebhookApplication.start({
    imports: [TerminusModule.forRoot({ logger: false })],
    controllers: [HealthController],
    providers: [PaymentsHealthIndicator, Books],
    payments: { inbox, worker: { retry: none }, ...payments },
  });
}

/** Requests a health endpoint. Rejects after 20 s. If a check hangs, its test then fails and cleans up. */
export async function healthOf(
  { url }: WebhookApplication,
  endpoint: 'live' | 'ready',
): Promise<Health> {
  const response = await fetch(`${url}/health/${endpoint}`, {
    signal: AbortSignal.timeout(20_000),
  });
  const text = await response.text();
  const { details } = JSON.parse(text) as { details: { payments: Record<string, unknown> } };
  return { status: response.status, text, payments: details.payments };
}
