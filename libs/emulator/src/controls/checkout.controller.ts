import { Controller, Get, Header, Param, UseGuards, Inject } from '@nestjs/common';
import { EmulatorError } from '../emulator.errors.js';
import { EmulatorCore } from '../emulator.core.js';
import type { Transaction } from '../transactions/transaction.record.js';
import { SameOriginGuard } from './same-origin.guard.js';

/** The emulator's own: the page a `checkoutUrl` leads to. */
@Controller('emulator/checkout')
@UseGuards(SameOriginGuard)
export class CheckoutController {
  constructor(@Inject(EmulatorCore) private readonly core: EmulatorCore) {}

  @Get(':id')
  @Header('content-type', 'text/html; charset=utf-8')
  @Header('content-security-policy', "default-src 'none'; form-action 'self'")
  show(@Param('id') id: string): string {
    const transaction = this.core.transactions.get(id);
    if (transaction.kind !== 'checkout-invoice') {
      throw new EmulatorError('not_found', `transaction ${id} is no checkout invoice`);
    }
    return page(transaction);
  }
}

function page({ transactionId, amount, externalReference, completedAt }: Transaction): string {
  const pay = `<form method="post" action="/emulator/transactions/${transactionId}/complete"><button>Pay</button></form>`;
  return `<!doctype html>
<html lang="en">
<title>Checkout</title>
<h1>${escape(externalReference)}</h1>
<p>${amount}</p>
${completedAt === undefined ? pay : '<p>Paid</p>'}
</html>
`;
}

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
