import { Body, Controller, Get, NotFoundException, Param, Post } from '@nestjs/common';
import { NewOrder } from './new-order.dto.js';
import type { OrderView } from './order.js';
import { Orders } from './orders.service.js';

/** `POST /orders` and `GET /orders/:reference`. */
@Controller('orders')
export class OrdersController {
  constructor(private readonly orders: Orders) {}

  @Post()
  place(@Body() order: NewOrder): Promise<OrderView> {
    return this.orders.place(order);
  }

  @Get(':reference')
  async show(@Param('reference') reference: string): Promise<OrderView> {
    const order = await this.orders.find(reference);
    if (order === undefined) throw new NotFoundException(`there is no order ${reference}`);
    return order;
  }
}
