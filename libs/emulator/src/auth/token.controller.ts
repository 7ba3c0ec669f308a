import {
  Body,
  Controller,
  Headers,
  HttpCode,
  Post,
  UnauthorizedException,
  UseInterceptors,
} from '@nestjs/common';
import { EmulatorCore } from '../emulator-core.js';
import { EnvironmentAddress } from '../http/environment-address.js';
import { ResponseFaultInterceptor } from '../http/response-fault.interceptor.js';
import type { TokenResponse } from './token-exchange.js';

@Controller('v1/auth/token')
@UseInterceptors(ResponseFaultInterceptor)
export class TokenController {
  constructor(
    private readonly core: EmulatorCore,
    private readonly address: EnvironmentAddress,
  ) {}

  @Post()
  @HttpCode(200)
  async exchange(
    @Headers('authorization') authorization: string | undefined,
    @Body() body: unknown,
  ): Promise<TokenResponse> {
    const { environment } = this.address;
    const response = await this.core.tokenExchange.exchange(authorization, body, environment);
    if (!response) {
      throw new UnauthorizedException(
        `the request must have valid Basic credentials of the ${environment} environment and a JSON body with grant_type client_credentials`,
      );
    }
    return response;
  }
}
