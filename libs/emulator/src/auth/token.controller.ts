import {
  Body,
  Controller,
  Headers,
  HttpCode,
  Post,
  UnauthorizedException,
  UseInterceptors,
  Inject,
} from '@nestjs/common';
import { FaultInterceptor } from '../answers/fault.interceptor.js';
import { EmulatorCore } from '../emulator.core.js';
import { EmulatorHost } from '../emulator.host.js';
import type { TokenResponse } from './token.desk.js';

/** `POST /v1/auth/token` (section 4 of the service's page). */
@Controller('v1/auth/token')
@UseInterceptors(FaultInterceptor)
export class TokenController {
  constructor(
    @Inject(EmulatorCore) private readonly core: EmulatorCore,
    @Inject(EmulatorHost) private readonly host: EmulatorHost,
  ) {}

  @Post()
  @HttpCode(200)
  async exchange(
    @Headers('authorization') authorization: string | undefined,
    @Body() body: unknown,
  ): Promise<TokenResponse> {
    const response = await this.core.tokens.exchange(authorization, body, this.host.environment);
    if (!response) {
      throw new UnauthorizedException(
        `expected Basic credentials of the ${this.host.environment} environment and a JSON body with grant_type client_credentials`,
      );
    }
    return response;
  }
}
