import { Controller, Get, HttpStatus, Param, Post, Redirect, Res, UseGuards } from '@nestjs/common';
import { markup, PageHeaders, renderPage } from '../pages/page.js';
import type { HttpResponse } from '../pages/page.js';
import { SameOriginGuard } from '../pages/same-origin.guard.js';
import { OrdersService } from './orders.service.js';

/** The page of an order, `GET /orders/:reference`, and the button on this page that requests the invoice again. */
@Controller('orders')
export class OrderPageController {
  constructor(private readonly orders: OrdersService) {}

  @Get(':reference')
  @PageHeaders()
  async show(
    @Param('reference') reference: string,
    @Res({ passthrough: true }) response: HttpResponse,
  ): Promise<string> {
    if ((await this.orders.find(reference)) !== undefined) return orderPage(reference);
    response.status(HttpStatus.NOT_FOUND);
    return notFoundPage(reference);
  }

  /** Requests the invoice again, if the payments service was not available when the order was created. */
  @Post(':reference/checkout')
  @UseGuards(SameOriginGuard)
  @Redirect('/', HttpStatus.SEE_OTHER)
  async retryCheckout(@Param('reference') reference: string): Promise<{ url: string }> {
    await this.orders.create(await this.orders.get(reference));
    return { url: `/orders/${encodeURIComponent(reference)}` };
  }
}

function orderPage(reference: string): string {
  return renderPage({
    title: `Order ${reference}`,
    name: 'order',
    main: markup`<div id="order" data-reference="${reference}"><p>Loading the order …</p></div>
      <noscript
        ><p>
          This page needs JavaScript to show the payment.
          <a href="/api/orders/${reference}">The order as JSON</a>
        </p></noscript
      >`,
  });
}

function notFoundPage(reference: string): string {
  return renderPage({
    title: 'Order not found',
    main: markup`<h1>Order <span class="reference">${reference}</span> does not exist</h1>
      <p>Check the address, or <a href="/">choose a product</a>.</p>`,
  });
}
