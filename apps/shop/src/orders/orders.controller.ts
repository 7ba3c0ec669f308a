import { Body, Controller, Get, Header, Param, Post } from '@nestjs/common';
import { CreateOrderDto } from './order.js';
import type { OrderView } from './order.js';
import { OrdersService } from './orders.service.js';

/** The API of orders: `POST /api/orders` and `GET /api/orders/:reference`. */
@Controller('api/orders')
export class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Post()
  create(@Body() order: CreateOrderDto): Promise<OrderView> {
    return this.orders.create(order);
  }

  @Get(':reference')
  @Header('cache-control', 'no-store')
  get(@Param('reference') reference: string): Promise<OrderView> {
    return this.orders.get(reference);
  }
}
