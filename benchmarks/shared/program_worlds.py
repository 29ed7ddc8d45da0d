"""Four small simulated systems with ids, and tasks of two to four dependent calls over them, each with its program.

A task is what somebody asks, and a program that does it; what the program changes and returns is what is right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import WithJsonSchema
from typing_extensions import TypedDict


class Failed(Exception):
    """A call that a system refuses, with what it says."""


def _found(rows: list[Any], **wanted: Any) -> Any:
    """Return the first row with these values."""
    for row in rows:
        if all(str(row[key]).lower() == str(value).lower() for key, value in wanted.items()):
            return row
    raise Failed(f"nothing found for {', '.join(map(str, wanted.values()))}")


def _rows(keys: str, *rows: tuple[Any, ...]) -> list[Any]:
    return [dict(zip(keys.split(), row, strict=True)) for row in rows]


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
        self.customers = _rows(
            "id name email city",
            ("C-881", "Ada Park", "ada@park.example", "Oslo"),
            ("C-417", "Ben Cole", "ben@cole.example", "Bergen"),
            ("C-902", "Mia Lund", "mia@lund.example", "Oslo"),
        )
        self.products = _rows(
            "id title price stock", ("P-31", "kettle", 39.5, 4), ("P-58", "lamp", 89.0, 0), ("P-77", "chair", 120.0, 9)
        )
        self.orders = _rows(
            "id customer product total status",
            ("O-5512", "C-881", "P-31", 39.5, "delivered"),
            ("O-5629", "C-881", "P-77", 240.0, "sent"),
            ("O-5533", "C-417", "P-58", 89.0, "open"),
            ("O-5701", "C-902", "P-31", 79.0, "open"),
        )
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
        values = (number, who["id"], what["id"], what["price"] * quantity, "open")
        self.orders += _rows("id customer product total status", values)
        return self.orders[-1]

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


SHOP = [
    ("How much was the last order of Ada Park?", "return orders_of(find_customer('Ada Park').id)[-1].total"),
    ("Cancel the first order of Mia Lund.", "cancel_order(orders_of(find_customer('Mia Lund').id)[0].id)"),
    ("Order 2 chairs (product title: chair) for Ben Cole.",
     "place_order(find_customer('Ben Cole').id, find_product('chair').id, 2)"),
    ("What is the status of the first order of Ben Cole?",
     "return orders_of(find_customer('Ben Cole').id)[0].status"),
    ("Send Mia Lund a mail with the text 'Your kettle is ready'.",
     "send_mail(find_customer('Mia Lund').email, 'Your kettle is ready')"),
    ("Which product (its title) did Mia Lund order first?",
     "return get_product(orders_of(find_customer('Mia Lund').id)[0].product).title"),
]  # fmt: skip

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
        self.employees = _rows(
            "id name title team days_left",
            ("E-104", "Tom Reed", "engineer", "T-7", 12),
            ("E-131", "Lea Stone", "manager", "T-7", 3),
            ("E-160", "Raj Patel", "designer", "T-9", 20),
            ("E-175", "Eva Brandt", "manager", "T-9", 8),
        )
        self.teams = _rows(
            "id name lead room", ("T-7", "Platform", "E-131", "B204"), ("T-9", "Studio", "E-175", "A110")
        )
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


OFFICE = [
    ("In which room does the team of Tom Reed sit?", "return get_team(search_employee('Tom Reed').team).room"),
    ("Who leads the Studio team? Give the full name.", "return get_employee(find_team('Studio').lead).name"),
    ("Request 5 days of leave from 2031-07-04 for Raj Patel.",
     "request_leave(search_employee('Raj Patel').id, '2031-07-04', 5)"),
    ("Move Tom Reed to the Studio team.", "move_to_team(search_employee('Tom Reed').id, find_team('Studio').id)"),
    ("Send the lead of the Platform team the message 'Budget approved'.",
     "send_message(find_team('Platform').lead, 'Budget approved')"),
    ("How many days of leave does the lead of Raj Patel's team have left?",
     "return get_employee(get_team(search_employee('Raj Patel').team).lead).days_left"),
]  # fmt: skip

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
        self.patients = _rows(
            "patient_id name phone doctor_id",
            (3301, "Noah Weber", "555-0141", 12),
            (3340, "Ines Rossi", "555-0187", 19),
            (3395, "Karl Holm", "555-0102", 12),
        )
        self.doctors = _rows(
            "doctor_id name field phone",
            (12, "Dr. Silva", "cardiology", "555-0990"),
            (19, "Dr. Okoye", "dermatology", "555-0931"),
        )
        self.visits = _rows(
            "visit_id patient_id doctor_id day",
            (70211, 3301, 12, "2031-03-02"),
            (70240, 3301, 19, "2031-03-20"),
            (70265, 3340, 19, "2031-03-11"),
        )

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
        known = _found(self.patients, patient_id=patient_id), _found(self.doctors, doctor_id=doctor_id)
        values = (70300 + len(self.visits), known[0]["patient_id"], known[1]["doctor_id"], day)
        self.visits += _rows("visit_id patient_id doctor_id day", values)
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


CLINIC = [
    ("What is the phone number of Karl Holm's doctor?",
     "return get_doctor(find_patient('Karl Holm').doctor_id).phone"),
    ("Move the last visit of Noah Weber to 2031-04-01.",
     "move_visit(list_visits(find_patient('Noah Weber').patient_id)[-1].visit_id, '2031-04-01')"),
    ("Book a visit for Ines Rossi with her regular doctor on 2031-05-09.",
     "p = find_patient('Ines Rossi')\nbook_visit(p.patient_id, p.doctor_id, '2031-05-09')"),
    ("On which day is the first visit of Ines Rossi?",
     "return list_visits(find_patient('Ines Rossi').patient_id)[0].day"),
    ("Make the first dermatology doctor the regular doctor of Karl Holm.",
     "set_doctor(find_patient('Karl Holm').patient_id, doctors_by_field('dermatology')[0].doctor_id)"),
    ("Book a visit for Karl Holm at the first cardiology doctor on 2031-06-30.",
     "book_visit(find_patient('Karl Holm').patient_id, doctors_by_field('cardiology')[0].doctor_id, '2031-06-30')"),
]  # fmt: skip

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
        self.rooms = _rows("room_id name floor", ("rm_1", "kitchen", 0), ("rm_2", "bedroom", 1), ("rm_3", "garage", 0))
        self.devices = _rows(
            "device_id name kind room_id battery",
            ("dev_a41", "ceiling lamp", "light", "rm_1", 100),
            ("dev_b07", "window sensor", "sensor", "rm_1", 37),
            ("dev_c93", "night lamp", "light", "rm_2", 64),
            ("dev_d15", "door lock", "lock", "rm_3", 18),
        )
        self.scenes = _rows("scene_id name devices", ("sc_08", "evening", ["dev_c93", "dev_a41"]))
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


HOME = [
    ("On which floor is the door lock?", "return room_by_id(find_device('door lock').room_id).floor"),
    ("Switch on the first device in the kitchen.",
     "switch(devices_in(get_room('kitchen').room_id)[0].device_id, True)"),
    ("Note that the night lamp is now in the garage.",
     "move_device(find_device('night lamp').device_id, get_room('garage').room_id)"),
    ("What is the battery of the last device in the kitchen?",
     "return devices_in(get_room('kitchen').room_id)[-1].battery"),
    ("Switch off the first device of the scene 'evening'.", "switch(find_scene('evening').devices[0], False)"),
    ("Switch on the window sensor and switch off the door lock.",
     "switch(find_device('window sensor').device_id, True)\nswitch(find_device('door lock').device_id, False)"),
]  # fmt: skip

#: Each system, with its tasks: what is asked, and a program that does it.
WORLDS: dict[str, tuple[Callable[[], Any], list[tuple[str, str]]]] = {
    "shop": (Shop, SHOP),
    "office": (Office, OFFICE),
    "clinic": (Clinic, CLINIC),
    "home": (Home, HOME),
}
