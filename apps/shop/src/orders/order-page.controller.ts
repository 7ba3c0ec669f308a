import {
  Controller,
  Get,
  HttpStatus,
  NotFoundException,
  Param,
  Post,
  Redirect,
  Res,
  UseGuards,
} from '@nestjs/common';
import { markup } from '../pages/markup.js';
import { OwnPagesGuard } from '../pages/own-pages.guard.js';
import { PageHeaders, renderPage } from '../pages/page.js';
import type { Answer } from '../pages/page.js';
import { Orders } from './orders.service.js';

/** `GET /o/:reference`, the page of an order, and the button on it that asks for a checkout again. */
@Controller('o')
export class OrderPageController {
  constructor(private readonly orders: Orders) {}

  @Get(':reference')
  @PageHeaders()
  async show(
    @Param('reference') reference: string,
    @Res({ passthrough: true }) answer: Answer,
  ): Promise<string> {
    const order = await this.orders.find(reference);
    if (order === undefined) {
      answer.status(HttpStatus.NOT_FOUND);
      return renderPage({
        title: 'No such order',
        main: markup`<h1>There is no order <span class="reference">${reference}</span></h1>
          <p>Look at the address again, or <a href="/">choose something from the shelf</a>.</p>`,
      });
    }
    return renderPage({
      title: `Order ${reference}`,
      script: 'order.js',
      main: markup`<div id="order" data-reference="${reference}"><p>Looking it up …</p></div>
        <noscript
          ><p>
            Without JavaScript this page can't follow the payment.
            <a href="/orders/${reference}">How the order stands</a>
          </p></noscript
        >`,
    });
  }

  /** The service may have been out of reach when the order was placed. */
  @Post(':reference/checkout')
  @UseGuards(OwnPagesGuard)
  @Redirect('/', HttpStatus.SEE_OTHER)
  async askAgain(@Param('reference') reference: string): Promise<{ url: string }> {
    const order = await this.orders.find(reference);
    if (order === undefined) throw new NotFoundException(`there is no order ${reference}`);
    await this.orders.place(order);
    return { url: `/o/${encodeURIComponent(reference)}` };
  }
}
