import {
  All,
  Body,
  Controller,
  Get,
  HttpCode,
  Inject,
  Post,
  Put,
  Req,
  Scope,
  UseGuards,
} from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { IsNotEmpty, IsObject, IsString } from 'class-validator';
import { PaymentInbox, VerifiedEvent, WebhookGuard } from 'nestjs-payments';
import type { InboxReceipt, VerifiedRequest } from 'nestjs-payments';

/** A request after the guard has verified it. */
export type Request = VerifiedRequest & { body: unknown; rawBody: Buffer };

/** Base class of the controllers: it passes verified events to the inbox. */
export abstract class Receiving {
  constructor(@Inject(PaymentInbox) private readonly inbox: PaymentInbox) {}

  protected async take({ verifiedEvent }: VerifiedRequest): Promise<InboxReceipt> {
    return this.inbox.receive(verifiedEvent);
  }
}

@Controller('method')
export class OnMethods extends Receiving {
  @Post()
  @HttpCode(200)
  @UseGuards(WebhookGuard)
  async receive(@Req() request: Request): Promise<object> {
    const { verifiedEvent, body, rawBody } = request;
    const seen = {
      verified: verifiedEvent instanceof VerifiedEvent,
      company: verifiedEvent.company,
      same: verifiedEvent.event === body,
      raw: rawBody.toString('base64'),
    };
    return { ...seen, ...(await this.take(request)) };
  }

  @Post('of/:company')
  @HttpCode(200)
  @UseGuards(WebhookGuard)
  async named(@Req() request: Request): Promise<InboxReceipt> {
    return this.take(request);
  }

  @Get('open')
  @UseGuards(WebhookGuard)
  closed(): void {}

  /** A route next to the guarded ones, which the guard ignores. */
  @Post('open')
  open(@Body() body: unknown): object {
    return { body };
  }
}

@Controller(['class', 'classes'])
@UseGuards(WebhookGuard)
export class OnClass extends Receiving {
  @Post(['', 'again'])
  @HttpCode(200)
  async receive(@Req() request: Request): Promise<InboxReceipt> {
    return this.take(request);
  }

  @Get()
  list(): string[] {
    return [];
  }

  @Put()
  change(): void {}
}

class Stricter extends WebhookGuard {}

@Controller('all')
export class OnAll extends Receiving {
  @All('/*')
  @HttpCode(200)
  @UseGuards(Stricter)
  async receive(@Req() request: Request): Promise<InboxReceipt> {
    return this.take(request);
  }
}

@Controller({ path: 'scoped', scope: Scope.REQUEST })
export class RequestScoped extends OnMethods {
  constructor(
    @Inject(PaymentInbox) inbox: PaymentInbox,
    @Inject(REQUEST) readonly request: object,
  ) {
    super(inbox);
  }
}

class Envelope {
  @IsString()
  @IsNotEmpty()
  id!: string;
  @IsString()
  eventType!: string;
  @IsString()
  timestamp!: string;
  @IsObject()
  data!: object;
  @IsObject()
  metadata!: object;
}

@Controller('validated')
export class Validated extends Receiving {
  @Post()
  @HttpCode(200)
  @UseGuards(WebhookGuard)
  async receive(@Body() body: Envelope, @Req() request: Request): Promise<object> {
    return { ...(await this.take(request)), validated: body instanceof Envelope };
  }
}

/** A guarded route that stores nothing. */
@Controller('hooks')
export class Hooks {
  @Post(':company')
  @HttpCode(200)
  @UseGuards(WebhookGuard)
  receive(): object {
    return { received: true };
  }
}
