import { Controller, Get, Inject, UseGuards } from '@nestjs/common';
import type { Environment } from '../companies/company.record.js';
import type { DeliveryState } from '../deliveries/delivery.record.js';
import { EmulatorCore } from '../emulator.core.js';
import { EmulatorHost } from '../emulator.host.js';
import type { FaultPlan } from '../faults/fault.plan.js';
import { SameOriginGuard } from './same-origin.guard.js';

/** How many companies a page is told of, the newest. */
const SHOWN_COMPANIES = 200;

/** What the page asks for again and again: no secret, and nothing that grows without bounds. */
interface Overview {
  readonly environment: Environment;
  /** ISO 8601, UTC, by the emulator's clock. */
  readonly now: string;
  readonly hosts: Readonly<Record<Environment, string>>;
  /** Milliseconds before each further attempt, where a company's faults don't say. */
  readonly redeliver: readonly number[];
  readonly log: {
    /** How many attempts the log holds at the most. */
    readonly size: number;
    readonly counts: Partial<Record<DeliveryState, number>>;
  };
  readonly companyCount: number;
  readonly companies: readonly {
    readonly companyId: string;
    readonly webhook: { readonly url: string | null; readonly active: boolean };
    readonly faults: FaultPlan;
  }[];
}

/** The emulator's own: how it stands, for its page. */
@Controller('emulator/overview')
@UseGuards(SameOriginGuard)
export class OverviewController {
  constructor(
    @Inject(EmulatorCore) private readonly core: EmulatorCore,
    @Inject(EmulatorHost) private readonly host: EmulatorHost,
  ) {}

  @Get()
  show(): Overview {
    const { options, hosts, log, companies, faults } = this.core;
    const all = companies.all();
    return {
      environment: this.host.environment,
      now: new Date(options.clock.now()).toISOString(),
      hosts: { sandbox: hosts.sandbox.url, production: hosts.production.url },
      redeliver: options.redeliver,
      log: { size: options.logSize, counts: log.counts() },
      companyCount: all.length,
      // The first is the one the emulator started with, which most calls are about.
      companies: [...all.slice(0, 1), ...all.slice(1).slice(1 - SHOWN_COMPANIES)].map(
        ({ companyId, webhook: { url, active } }) => ({
          companyId,
          webhook: { url, active },
          faults: faults.get(companyId),
        }),
      ),
    };
  }
}
