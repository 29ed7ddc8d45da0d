"""Four small simulated systems with ids, and tasks of two to four dependent calls over them, each with its program.

A task is what somebody asks, and a program that does it; what the program changes and returns is what is right. The
tables of the systems and the tasks are in ``program_worlds.json``.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import WithJsonSchema
from typing_extensions import TypedDict

_KNOWN: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


class Failed(Exception):
    """A call that a system refuses, with what it says."""


def _found(rows: list[Any], **wanted: Any) -> Any:
    """Return the first row with these values."""
    for row in rows:
        if all(str(row[key]).lower() == str(value).lower() for key, value in wanted.items()):
            return row
    raise Failed(f"nothing found for {', '.join(map(str, wanted.values()))}")


def _tables(system: str) -> list[Any]:
    """Return the tables of a system as they are before a task, each a list of rows."""
    return copy.deepcopy(list(_KNOWN[system]["tables"].values()))


CustomerId = Annotated[str, WithJsonSchema({"type": "string", "x-type": "CustomerId"})]
OrderId = Annotated[str, WithJsonSchema({"type": "string", "x-type": "OrderId"})]
ProductId = Annotated[str, WithJsonSchema({"type": "string", "x-type": "ProductId"})]


class Customer(TypedDict):
    """A customer, as calls return it."""

    id: CustomerId
    name: str
    email: str
    city: str


class Order(TypedDict):
    """An order, as calls return it."""

    id: OrderId
    customer: CustomerId
    product: ProductId
    total: float
    status: str


class Product(TypedDict):
    """A product, as calls return it."""

    id: ProductId
    title: str
    price: float
    stock: int


class Shop:
    """Customers, their orders, and products."""

    def __init__(self) -> None:
        self.customers, self.products, self.orders = _tables("shop")
        self.mails: list[Any] = []

    def find_customer(self, name: str) -> Customer:
        """Find a customer by name."""
        return _found(self.customers, name=name)

    def orders_of(self, customer: CustomerId) -> list[Order]:
        """List the orders of a customer, oldest first."""
        return [one for one in self.orders if one["customer"] == _found(self.customers, id=customer)["id"]]

    def find_product(self, title: str) -> Product:
        """Find a product by its title."""
        return _found(self.products, title=title)

    def get_product(self, product: ProductId) -> Product:
        """Get a product."""
        return _found(self.products, id=product)

    def place_order(self, customer: CustomerId, product: ProductId, quantity: int = 1) -> Order:
        """Order a product for a customer."""
        who, what = _found(self.customers, id=customer), _found(self.products, id=product)
        number = f"O-{5800 + len(self.orders)}"
        total = what["price"] * quantity
        order: Order = {
            "id": number, "customer": who["id"], "product": what["id"], "total": total, "status": "open"
        }  # fmt: skip
        self.orders.append(order)
        return order

    def cancel_order(self, order: OrderId) -> Order:
        """Cancel an order."""
        found = _found(self.orders, id=order)
        found["status"] = "cancelled"
        return found

    def send_mail(self, to: str, text: str) -> bool:
        """Send a mail to an address."""
        if "@" not in to:
            raise Failed(f"{to!r} is no address")
        self.mails.append([to, text])
        return True


EmployeeId = Annotated[str, WithJsonSchema({"type": "string", "x-type": "EmployeeId"})]
TeamId = Annotated[str, WithJsonSchema({"type": "string", "x-type": "TeamId"})]


class Employee(TypedDict):
    """An employee, as calls return it."""

    id: EmployeeId
    name: str
    title: str
    team: TeamId
    days_left: int


class Team(TypedDict):
    """A team, as calls return it."""

    id: TeamId
    name: str
    lead: EmployeeId
    room: str


class Office:
    """Employees, teams and leave."""

    def __init__(self) -> None:
        self.employees, self.teams = _tables("office")
        self.leave: list[Any] = []
        self.messages: list[Any] = []

    def search_employee(self, name: str) -> Employee:
        """Look an employee up by full name."""
        return _found(self.employees, name=name)

    def get_employee(self, employee_id: EmployeeId) -> Employee:
        """Get an employee by id."""
        return _found(self.employees, id=employee_id)

    def get_team(self, team_id: TeamId) -> Team:
        """Get a team by id."""
        return _found(self.teams, id=team_id)

    def find_team(self, name: str) -> Team:
        """Find a team by its name."""
        return _found(self.teams, name=name)

    def request_leave(self, employee_id: EmployeeId, start: str, days: int) -> bool:
        """Request leave for an employee, from a date (YYYY-MM-DD)."""
        self.leave.append([_found(self.employees, id=employee_id)["id"], start, days])
        return True

    def move_to_team(self, employee_id: EmployeeId, team_id: TeamId) -> Employee:
        """Move an employee to another team."""
        found = _found(self.employees, id=employee_id)
        found["team"] = _found(self.teams, id=team_id)["id"]
        return found

    def send_message(self, to: EmployeeId, text: str) -> bool:
        """Send a message to an employee."""
        self.messages.append([_found(self.employees, id=to)["id"], text])
        return True


PatientId = Annotated[int, WithJsonSchema({"type": "integer", "x-type": "PatientId"})]
DoctorId = Annotated[int, WithJsonSchema({"type": "integer", "x-type": "DoctorId"})]
VisitId = Annotated[int, WithJsonSchema({"type": "integer", "x-type": "VisitId"})]


class Patient(TypedDict):
    """A patient, as calls return it."""

    patient_id: PatientId
    name: str
    phone: str
    doctor_id: DoctorId


class Doctor(TypedDict):
    """A doctor, as calls return it."""

    doctor_id: DoctorId
    name: str
    field: str
    phone: str


class Visit(TypedDict):
    """A visit, as calls return it."""

    visit_id: VisitId
    patient_id: PatientId
    doctor_id: DoctorId
    day: str


class Clinic:
    """Patients, doctors and visits."""

    def __init__(self) -> None:
        self.patients, self.doctors, self.visits = _tables("clinic")

    def find_patient(self, name: str) -> Patient:
        """Find a patient by name."""
        return _found(self.patients, name=name)

    def get_doctor(self, doctor_id: DoctorId) -> Doctor:
        """Get a doctor."""
        return _found(self.doctors, doctor_id=doctor_id)

    def doctors_by_field(self, field: str) -> list[Doctor]:
        """List the doctors of a field, such as cardiology."""
        return [one for one in self.doctors if one["field"] == field.lower()]

    def list_visits(self, patient_id: PatientId) -> list[Visit]:
        """List the visits of a patient, earliest first."""
        known = _found(self.patients, patient_id=patient_id)["patient_id"]
        return [one for one in self.visits if one["patient_id"] == known]

    def book_visit(self, patient_id: PatientId, doctor_id: DoctorId, day: str) -> Visit:
        """Book a visit of a patient at a doctor, on a day (YYYY-MM-DD)."""
        patient, doctor = _found(self.patients, patient_id=patient_id), _found(self.doctors, doctor_id=doctor_id)
        known = {"patient_id": patient["patient_id"], "doctor_id": doctor["doctor_id"]}
        self.visits.append({"visit_id": 70300 + len(self.visits), **known, "day": day})
        return self.visits[-1]

    def move_visit(self, visit_id: VisitId, day: str) -> Visit:
        """Move a visit to another day (YYYY-MM-DD)."""
        found = _found(self.visits, visit_id=visit_id)
        found["day"] = day
        return found

    def set_doctor(self, patient_id: PatientId, doctor_id: DoctorId) -> Patient:
        """Make a doctor the regular doctor of a patient."""
        found = _found(self.patients, patient_id=patient_id)
        found["doctor_id"] = _found(self.doctors, doctor_id=doctor_id)["doctor_id"]
        return found


RoomId = Annotated[str, WithJsonSchema({"type": "string", "x-type": "RoomId"})]
DeviceId = Annotated[str, WithJsonSchema({"type": "string", "x-type": "DeviceId"})]
SceneId = Annotated[str, WithJsonSchema({"type": "string", "x-type": "SceneId"})]


class Room(TypedDict):
    """A room, as calls return it."""

    room_id: RoomId
    name: str
    floor: int


class Device(TypedDict):
    """A device, as calls return it."""

    device_id: DeviceId
    name: str
    kind: str
    room_id: RoomId
    battery: int


class Scene(TypedDict):
    """A scene, as calls return it."""

    scene_id: SceneId
    name: str
    devices: list[DeviceId]


class Home:
    """Rooms, devices and scenes."""

    def __init__(self) -> None:
        self.rooms, self.devices, self.scenes = _tables("home")
        self.power: dict[str, Any] = {}

    def get_room(self, name: str) -> Room:
        """Get a room by its name."""
        return _found(self.rooms, name=name)

    def room_by_id(self, room_id: RoomId) -> Room:
        """Get a room by its id."""
        return _found(self.rooms, room_id=room_id)

    def devices_in(self, room_id: RoomId) -> list[Device]:
        """List the devices in a room."""
        return [one for one in self.devices if one["room_id"] == _found(self.rooms, room_id=room_id)["room_id"]]

    def find_device(self, name: str) -> Device:
        """Find a device by its name."""
        return _found(self.devices, name=name)

    def switch(self, device_id: DeviceId, on: bool) -> bool:
        """Switch a device on or off."""
        self.power[_found(self.devices, device_id=device_id)["device_id"]] = on
        return on

    def move_device(self, device_id: DeviceId, room_id: RoomId) -> Device:
        """Note that a device is in another room."""
        found = _found(self.devices, device_id=device_id)
        found["room_id"] = _found(self.rooms, room_id=room_id)["room_id"]
        return found

    def find_scene(self, name: str) -> Scene:
        """Find a scene by its name."""
        return _found(self.scenes, name=name)


#: Each system, with its tasks: what is asked, and a program that does it.
WORLDS: dict[str, tuple[Callable[[], Any], list[tuple[str, str]]]] = {
    name: (make, [(task["request"], task["program"]) for task in _KNOWN[name]["tasks"]])
    for name, make in (("shop", Shop), ("office", Office), ("clinic", Clinic), ("home", Home))
}
