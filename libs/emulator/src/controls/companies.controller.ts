import {
  Body,
  Controller,
  Delete,
  Get,
  HttpCode,
  Param,
  Post,
  Put,
  UseGuards,
} from '@nestjs/common';
import type { CompanyCredentials } from '../companies/company.js';
import { toCredentials } from '../companies/company.js';
import { EmulatorCore } from '../emulator-core.js';
import type { FaultPlan } from '../faults/fault-plan.js';
import { SameOriginGuard } from '../http/same-origin.guard.js';

interface FaultPath {
  readonly companyId: string;
  readonly target: string;
  readonly fault: string;
}

/** Endpoints that only the emulator has: companies with their webhooks, secrets, tokens and faults. */
@Controller('emulator/companies')
@UseGuards(SameOriginGuard)
export class CompaniesController {
  constructor(private readonly core: EmulatorCore) {}

  @Post()
  async create(@Body() body: unknown): Promise<CompanyCredentials> {
    const { webhookUrl } = (body ?? {}) as { webhookUrl?: unknown };
    await this.core.requirePublicHost('webhookUrl', webhookUrl);
    return toCredentials(this.core.companies.create(body));
  }

  @Get()
  list(): CompanyCredentials[] {
    return this.core.companies.all().map(toCredentials);
  }

  @Get(':companyId')
  get(@Param('companyId') companyId: string): CompanyCredentials {
    return toCredentials(this.core.companies.get(companyId));
  }

  @Put(':companyId/webhook')
  async setWebhook(
    @Param('companyId') companyId: string,
    @Body() body: object,
  ): Promise<CompanyCredentials> {
    await this.core.requirePublicHost('url', (body as { url?: unknown } | null)?.url);
    return toCredentials(this.core.companies.setWebhook({ ...body, companyId }));
  }

  @Post(':companyId/webhook-secret')
  @HttpCode(200)
  rotateWebhookSecret(
    @Param('companyId') companyId: string,
    @Body() body: object,
  ): CompanyCredentials {
    return toCredentials(this.core.companies.rotateWebhookSecret({ ...body, companyId }));
  }

  @Post(':companyId/client-secret')
  @HttpCode(200)
  rotateClientSecret(
    @Param('companyId') companyId: string,
    @Body() body: object,
  ): CompanyCredentials {
    return toCredentials(this.core.companies.rotateClientSecret({ ...body, companyId }));
  }

  @Post(':companyId/revoke-tokens')
  @HttpCode(204)
  revokeTokens(@Param('companyId') companyId: string, @Body() body: object): void {
    this.core.companies.revokeTokens({ ...body, companyId });
  }

  @Get(':companyId/faults')
  faults(@Param('companyId') companyId: string): FaultPlan {
    return this.core.faults.get(this.core.companies.get(companyId).companyId);
  }

  /** Enables or changes one fault. The other faults do not change. */
  @Put(':companyId/faults/:target/:fault')
  setFault(@Param() path: FaultPath, @Body() body: unknown): FaultPlan {
    return this.core.changeFault(path.companyId, path.target, path.fault, body);
  }

  @Delete(':companyId/faults/:target/:fault')
  clearFault(@Param() path: FaultPath): FaultPlan {
    return this.core.changeFault(path.companyId, path.target, path.fault, undefined);
  }

  @Put(':companyId/faults')
  setFaults(@Param('companyId') companyId: string, @Body() body: unknown): FaultPlan {
    this.core.faults.set(this.core.companies.get(companyId).companyId, body);
    return this.core.faults.get(companyId);
  }
}
