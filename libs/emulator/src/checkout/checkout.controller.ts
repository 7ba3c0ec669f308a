import {
  Body,
  Controller,
  Get,
  Param,
  ParseEnumPipe,
  Post,
  Redirect,
  Res,
  UseGuards,
} from '@nestjs/common';
import { IsOptional, IsString, MaxLength } from 'class-validator';
import type { FastifyReply } from 'fastify';
import { validateInput } from '../validate-input.js';
import { WithoutControlToken } from '../controls/control-token.guard.js';
import { EmulatorCore } from '../emulator-core.js';
import { EmulatorError } from '../emulator-errors.js';
import { SameOriginGuard } from '../http/same-origin.guard.js';
import { sendPage, staticPage } from '../pages/page-layout.js';
import { checkoutPage, noSuchInvoice } from './checkout-page.js';
import type { CheckoutAction } from './checkout-sessions.js';

const BUTTONS = {
  resend: 'resend',
  pay: 'pay',
  decline: 'decline',
  cancel: 'cancel',
  restart: 'restart',
} as const;

/** The form with the phone number. `CheckoutSessions` validates the number. */
class PhoneForm {
  @IsOptional()
  @IsString({ message: 'phoneNumber must be text' })
  @MaxLength(200, { message: 'phoneNumber must be at most 200 characters' })
  phoneNumber?: string | undefined;
}

class CodeForm {
  @IsOptional()
  @IsString({ message: 'code must be text' })
  @MaxLength(200, { message: 'code must be at most 200 characters' })
  code?: string | undefined;
}

/** A redirect to the page that shows the result. A reload of that page does not repeat the action. */
interface SeeOther {
  readonly url: string;
  readonly statusCode: 303;
}

/**
 * Endpoints that only the emulator has: the hosted checkout at `checkoutUrl`. These endpoints require no control token,
 * because customers have none.
 */
@Controller('emulator/checkout')
@WithoutControlToken()
@UseGuards(SameOriginGuard)
export class CheckoutController {
  constructor(private readonly core: EmulatorCore) {}

  @Get(':id')
  show(@Param('id') id: string, @Res({ passthrough: true }) reply: FastifyReply): string {
    try {
      const { checkout, options } = this.core;
      const transaction = checkout.find(id);
      const view = {
        transaction,
        step: checkout.step(id),
        now: options.clock.now(),
        currency: options.currency,
        withLog: this.#withLog,
      };
      return sendPage(
        reply,
        staticPage(`Checkout ${transaction.externalReference}`, checkoutPage(view)),
      );
    } catch (error) {
      // A customer sees this error in a browser, so the response is a page and not JSON.
      if (!(error instanceof EmulatorError)) throw error;
      void reply.status(404);
      return sendPage(reply, staticPage('No such invoice', noSuchInvoice(id, this.#withLog)));
    }
  }

  @Post(':id/phone')
  @Redirect()
  phone(@Param('id') id: string, @Body() body: unknown): SeeOther {
    const { phoneNumber = '' } = validateInput(PhoneForm, body);
    return this.#apply(id, { type: 'phone', phoneNumber });
  }

  @Post(':id/code')
  @Redirect()
  code(@Param('id') id: string, @Body() body: unknown): SeeOther {
    const { code = '' } = validateInput(CodeForm, body);
    return this.#apply(id, { type: 'code', code });
  }

  @Post(':id/:button')
  @Redirect()
  press(
    @Param('id') id: string,
    @Param('button', new ParseEnumPipe(BUTTONS)) button: keyof typeof BUTTONS,
  ): SeeOther {
    return this.#apply(id, { type: button });
  }

  /**
   * Whether the checkout page links to the delivery log. Customers cannot open the log if it requires a control token.
   */
  get #withLog(): boolean {
    return this.core.controlToken === undefined;
  }

  #apply(id: string, action: CheckoutAction): SeeOther {
    try {
      this.core.checkout.apply(id, action);
    } catch (error) {
      // After the redirect, the page explains that the invoice does not exist.
      if (!(error instanceof EmulatorError)) throw error;
    }
    // The URL has no host, so that a browser at localhost stays at localhost, as the Content-Security-Policy requires.
    return { url: `/emulator/checkout/${encodeURIComponent(id)}`, statusCode: 303 };
  }
}
