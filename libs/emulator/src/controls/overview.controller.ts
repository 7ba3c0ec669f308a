import { Controller, Get, UseGuards } from '@nestjs/common';
import type { Environment } from '../companies/company.js';
import type { DeliveryState } from '../deliveries/delivery-attempt.js';
import { EmulatorCore } from '../emulator-core.js';
import { EnvironmentAddress } from '../http/environment-address.js';
import type { FaultPlan } from '../faults/fault-plan.js';
import { SameOriginGuard } from '../http/same-origin.guard.js';

/** Maximum number of companies in the overview, which contains the first company and the newest companies. */
const MAX_COMPANIES = 200;

/**
 * The data that the emulator's page requests at regular intervals. The data contains no secret, and its size is
 * bounded.
 */
interface Overview {
  readonly environment: Environment;
  /** The time of the emulator's clock. ISO 8601, UTC. */
  readonly now: string;
  /** The time of the system clock. ISO 8601, UTC. This time differs from `now` if the emulator uses another clock. */
  readonly realTime: string;
  readonly currency: string;
  readonly hosts: Readonly<Record<Environment, string>>;
  /**
   * Milliseconds before each further attempt of a failed delivery. The fault plan of a company can override this
   * schedule.
   */
  readonly redeliver: readonly number[];
  readonly log: {
    /** Maximum number of attempts in the log. */
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

/** Endpoint that only the emulator has: the state that the emulator's page shows. */
@Controller('emulator/overview')
@UseGuards(SameOriginGuard)
export class OverviewController {
  constructor(
    private readonly core: EmulatorCore,
    private readonly address: EnvironmentAddress,
  ) {}

  @Get()
  show(): Overview {
    const { options, addresses, log, companies, faults } = this.core;
    const all = companies.all();
    return {
      environment: this.address.environment,
      now: new Date(options.clock.now()).toISOString(),
      realTime: new Date().toISOString(),
      currency: options.currency,
      hosts: { sandbox: addresses.sandbox.url, production: addresses.production.url },
      redeliver: options.redeliver,
      log: { size: options.logSize, counts: log.counts() },
      companyCount: all.length,
      // The emulator started with the first company. Most users use only this company.
      companies: [...all.slice(0, 1), ...all.slice(1).slice(1 - MAX_COMPANIES)].map(
        ({ companyId, webhook: { url, active } }) => ({
          companyId,
          webhook: { url, active },
          faults: faults.get(companyId),
        }),
      ),
    };
  }
}
