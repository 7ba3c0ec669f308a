import {
  Body,
  Controller,
  Get,
  Inject,
  Param,
  ParseEnumPipe,
  Post,
  Redirect,
  Res,
  UseGuards,
} from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { WithoutControlToken } from '../controls/control-token.guard.js';
import { SameOriginGuard } from '../controls/same-origin.guard.js';
import { EmulatorCore } from '../emulator.core.js';
import { EmulatorError } from '../emulator.errors.js';
import { checkInput } from '../emulator.input.js';
import { sendPage } from '../pages/page.reply.js';
import { staticPage } from '../pages/page.shell.js';
import type { CheckoutMove } from './checkout.desk.js';
import { CodeForm, PhoneForm } from './checkout.inputs.js';
import { checkoutPage, noSuchInvoice } from './checkout.page.js';

const BUTTONS = {
  resend: 'resend',
  pay: 'pay',
  decline: 'decline',
  cancel: 'cancel',
  restart: 'restart',
} as const;

/** Back to the page, which says what has become of it: a reload then repeats nothing. */
interface SeeOther {
  readonly url: string;
  readonly statusCode: 303;
}

/** The emulator's own: the hosted checkout a `checkoutUrl` leads to. It is for customers, who have no control token. */
@Controller('emulator/checkout')
@WithoutControlToken()
@UseGuards(SameOriginGuard)
export class CheckoutController {
  constructor(@Inject(EmulatorCore) private readonly core: EmulatorCore) {}

  @Get(':id')
  show(@Param('id') id: string, @Res({ passthrough: true }) reply: FastifyReply): string {
    try {
      const { checkout, options } = this.core;
      const transaction = checkout.find(id);
      const view = {
        transaction,
        step: checkout.step(id),
        now: options.clock.now(),
        withLog: this.#withLog,
      };
      return sendPage(
        reply,
        staticPage(`Checkout ${transaction.externalReference}`, checkoutPage(view)),
      );
    } catch (error) {
      // A person reads this, perhaps a customer of a demo: not the controls' JSON.
      if (!(error instanceof EmulatorError)) throw error;
      void reply.status(404);
      return sendPage(reply, staticPage('No such invoice', noSuchInvoice(id, this.#withLog)));
    }
  }

  @Post(':id/phone')
  @Redirect()
  phone(@Param('id') id: string, @Body() body: unknown): SeeOther {
    const { phoneNumber = '' } = checkInput(PhoneForm, body);
    return this.#move(id, { do: 'phone', phoneNumber });
  }

  @Post(':id/code')
  @Redirect()
  code(@Param('id') id: string, @Body() body: unknown): SeeOther {
    const { code = '' } = checkInput(CodeForm, body);
    return this.#move(id, { do: 'code', code });
  }

  @Post(':id/:button')
  @Redirect()
  press(
    @Param('id') id: string,
    @Param('button', new ParseEnumPipe(BUTTONS)) button: keyof typeof BUTTONS,
  ): SeeOther {
    return this.#move(id, { do: button });
  }

  /** Whether the page leads to the delivery log, which a customer cannot open if it demands a token. */
  get #withLog(): boolean {
    return this.core.controlToken === undefined;
  }

  #move(id: string, move: CheckoutMove): SeeOther {
    try {
      this.core.checkout.move(id, move);
    } catch (error) {
      // The page says what it is that there is not.
      if (!(error instanceof EmulatorError)) throw error;
    }
    // A path alone: whoever came as localhost stays there, as the page's policy asks of its forms.
    return { url: `/emulator/checkout/${encodeURIComponent(id)}`, statusCode: 303 };
  }
}
