"""Which words of a trace say what a tensor holds, whoever compiled torch; and which do not."""

from __future__ import annotations

import pytest

from stepcrit.slimming.vocabulary import DEVICE_NAME, TYPE_NAME


@pytest.mark.parametrize(
    "written",
    [
        *("float", "double", "long double", "bool", "int", "long", "long int", "short int", "long long int"),
        *("unsigned", "unsigned char", "unsigned int", "unsigned short", "long unsigned int", "signed char"),
        *("__int64", "unsigned __int64", "std::int64_t", "uint8_t"),  # MSVC, and aliases
        *("c10::Half", "c10::BFloat16", "c10::complex<float>", "c10::complex<c10::Half>", "c10::qint8"),
        *("struct c10::Half", "class c10::complex<float>", "c10::Float8_e4m3fn", "c10::dummy_uint1_7_t<4>"),
        *(
            "Float",
            "Half",
            "BFloat16",
            "Long",
            "Bool",
            "Scalar",
            "ScalarList",
            "TensorList",
            "GenericList",
            "",
        ),
    ],
)
def test_names_of_element_types_stay(written: str) -> None:
    assert TYPE_NAME.fullmatch(written)


@pytest.mark.parametrize(
    "written",
    [
        "/home/ada/model",
        "ada",
        "c10::ada/host",
        "ada.example.com",
        "float ",
        "int\n",
        "c10::a<ada>",
        "secret_t",
    ],
)
def test_other_words_do_not(written: str) -> None:
    assert not TYPE_NAME.fullmatch(written)


def test_a_device_is_known_by_its_product_alone() -> None:
    assert DEVICE_NAME.fullmatch("NVIDIA A100-SXM4-40GB")
    assert DEVICE_NAME.fullmatch("AMD Instinct MI300X")
    assert not DEVICE_NAME.fullmatch("NVIDIA /home/ada/x")
    assert not DEVICE_NAME.fullmatch("NVIDIA H100 ada@example.com")
    assert not DEVICE_NAME.fullmatch("ada's GPU")
